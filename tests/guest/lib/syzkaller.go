// SPDX-License-Identifier: GPL-2.0-or-later

// Print what syzkaller's package report finds in the console log of a guest
// (standard input), as JSON: a list of reports, in their order.
//
// scripts/setup --only syzkaller builds it.
package main

import (
	"encoding/json"
	"io"
	"log"
	"os"

	"github.com/google/syzkaller/pkg/mgrconfig"
	"github.com/google/syzkaller/pkg/report"
	"github.com/google/syzkaller/sys/targets"
)

type found struct {
	Title     string   `json:"title"`
	AltTitles []string `json:"alt_titles"`
	Type      string   `json:"type"`
	Corrupted bool     `json:"corrupted"`
	Reason    string   `json:"corrupted_reason"`
}

func main() {
	cfg := &mgrconfig.Config{Derived: mgrconfig.Derived{
		TargetOS:   targets.Linux,
		TargetArch: targets.AMD64,
		SysTarget:  targets.Get(targets.Linux, targets.AMD64),
	}}
	reporter, err := report.NewReporter(cfg)
	if err != nil {
		log.Fatal(err)
	}
	console, err := io.ReadAll(os.Stdin)
	if err != nil {
		log.Fatal(err)
	}
	all := []found{}
	for _, r := range report.ParseAll(reporter, console) {
		all = append(all, found{r.Title, r.AltTitles, string(r.Type),
			r.Corrupted, r.CorruptedReason})
	}
	if err := json.NewEncoder(os.Stdout).Encode(all); err != nil {
		log.Fatal(err)
	}
}
