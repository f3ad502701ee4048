/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The main() of a test program that has none of its own. */
#include "tests/lib/test-main.h"

int main(int argc, char **argv)
{
    return test_run(argc, argv);
}
