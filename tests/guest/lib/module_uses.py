# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel's own modules that test_unloaded.py loads, uses and unloads.

A row is (name, use, undo): shell commands for the guest. Modules are loaded in
the order of the rows, each after those that it needs; all are loaded before the
first is used. What is used is undone in the opposite order. Some uses are meant
to fail, like a mount of a file system that is not on the disk: they end in
'|| :'. Other uses that fail are printed. A kernel that lacks a module, or has
it built in, skips the row.
"""
# /dev/ram0 is brd's, ka0 is a dummy; both are used by other rows.
ROWS = (
    # Network devices
    ('dummy', 'ip link add ka0 type dummy && ip link set ka0 up && '
     'ip addr add 10.9.0.1/24 dev ka0', 'ip link del ka0'),
    ('8021q', 'ip link add link ka0 name ka1 type vlan id 5 && '
     'ip link set ka1 up', 'ip link del ka1'),
    ('veth', 'ip link add ka2 type veth && ip link set ka2 up',
     'ip link del ka2'),
    ('bridge', 'ip link add ka3 type bridge && ip link set ka2 master ka3 && '
     'ip link set ka3 up', 'ip link del ka3'),
    ('macvlan', 'ip link add link ka0 name ka4 type macvlan && '
     'ip link set ka4 up', 'ip link del ka4'),
    ('macvtap', 'ip link add link ka0 name ka5 type macvtap && '
     'ip link set ka5 up', 'ip link del ka5'),
    ('bonding', 'ip link add ka6 type bond && ip link set ka6 up',
     'ip link del ka6'),
    ('team', 'ip link add ka7 type team', 'ip link del ka7'),
    ('ipvlan', 'ip link add ka8 type dummy && '
     'ip link add link ka8 name ka9 type ipvlan',
     'ip link del ka9; ip link del ka8'),
    ('tun', 'tunctl -t katun && ip link set katun up', 'tunctl -d katun'),
    ('ifb', 'ip link add ka10 type ifb && ip link set ka10 up',
     'ip link del ka10'),
    ('nlmon', 'ip link add ka11 type nlmon && ip link set ka11 up',
     'ip link del ka11'),
    ('vsockmon', 'ip link add ka12 type vsockmon && ip link set ka12 up',
     'ip link del ka12'),
    ('macsec', 'ip link add link ka0 name ka13 type macsec || :', ''),
    ('wireguard', 'ip link add ka14 type wireguard && ip link set ka14 up',
     'ip link del ka14'),
    ('vxlan', 'ip link add ka15 type vxlan || :', ''),
    ('geneve', 'ip link add ka16 type geneve || :', ''),
    # Tunnels have a device in each network namespace.
    ('ipip', 'ip link set tunl0 up', 'ip link set tunl0 down'),
    ('sit', 'ip link set sit0 up', 'ip link set sit0 down'),
    ('ip_gre', 'ip link set gre0 up', 'ip link set gre0 down'),
    ('ip6_tunnel', 'ip link set ip6tnl0 up', 'ip link set ip6tnl0 down'),
    ('ip6_gre', 'ip link set ip6gre0 up', 'ip link set ip6gre0 down'),
    ('ip_vti', 'ip link set ip_vti0 up', 'ip link set ip_vti0 down'),
    ('xfrm_interface', 'ip link add ka17 type xfrm || :', ''),
    ('pktgen', 'echo add_device ka0 > /proc/net/pktgen/kpktgend_0',
     'echo rem_device_all > /proc/net/pktgen/kpktgend_0'),
    # Queueing: a new device gets the default of its time.
    ('sch_sfq', 'queue sfq', ''),
    ('sch_fq', 'queue fq', ''),
    ('sch_pie', 'queue pie', ''),
    ('sch_prio', 'queue prio || :', ''),
    # Sockets: family, type, protocol
    ('tipc', 'ka-use socket 30 1 0', ''),
    ('rds', 'ka-use socket 21 5 0', ''),
    ('vsock_loopback', 'ka-use socket 40 1 0', ''),
    ('af_key', 'ka-use socket 15 3 2', ''),
    ('l2tp_ip', 'ka-use socket 2 2 115', ''),
    ('algif_hash', 'ka-use alg hash sha256', ''),
    ('algif_skcipher', 'ka-use alg skcipher "cbc(aes)"', ''),
    ('tcp_bbr', 'ka-use congestion bbr', ''),
    ('tcp_vegas', 'ka-use congestion vegas', ''),
    # Netfilter: asking for a table makes it.
    ('iptable_filter', 'ka-use table 4 filter', ''),
    ('iptable_nat', 'ka-use table 4 nat', ''),
    ('iptable_mangle', 'ka-use table 4 mangle', ''),
    ('ip6table_filter', 'ka-use table 6 filter', ''),
    ('nf_tables', '', ''),
    ('ip_set', '', ''),
    ('ip_vs', 'cat /proc/net/ip_vs', ''),
    ('openvswitch', '', ''),
    # libcrc32c, which xfs needs, and ext4 ask for this algorithm by its name.
    ('crc32c_generic', '', ''),
    # Disks. ext4 is used with brd.
    ('ext4', '', ''),
    ('brd', 'mke2fs /dev/ram0 && mount -t ext4 /dev/ram0 /tmp/ram0 && '
     'echo 1 > /tmp/ram0/file && umount /tmp/ram0', ''),
    ('loop', 'dd if=/dev/zero of=/tmp/disk bs=1M count=1 && '
     'losetup /dev/loop0 /tmp/disk && mke2fs /dev/loop0',
     'losetup -d /dev/loop0'),
    ('zram', 'echo 1M > /sys/block/zram0/disksize && mke2fs /dev/zram0',
     'echo 1 > /sys/block/zram0/reset'),
    ('null_blk', 'dd if=/dev/nullb0 of=/dev/null bs=4k count=4', ''),
    ('nbd', 'dd if=/dev/nbd0 of=/dev/null count=1 || :', ''),
    ('dm_mod', 'ka-use dm ka_linear linear "/dev/ram0 0"',
     'ka-use dm-remove ka_linear'),
    ('dm_zero', 'ka-use dm ka_zero zero "" && '
     'dd if=/dev/dm-1 of=/dev/null count=4 || :',
     'ka-use dm-remove ka_zero'),
    ('dm_delay', 'ka-use dm ka_delay delay "/dev/ram0 0 1"',
     'ka-use dm-remove ka_delay'),
    ('raid1', 'echo md_ka > /sys/module/md_mod/parameters/new_array',
     'echo clear > /sys/block/md_ka/md/array_state'),
    # File systems
    ('overlay', 'mkdir -p /tmp/lower /tmp/upper /tmp/work && '
     'echo 1 > /tmp/lower/file && mount -t overlay -o '
     'lowerdir=/tmp/lower,upperdir=/tmp/upper,workdir=/tmp/work ka /tmp/over '
     '&& echo 2 >> /tmp/over/file', 'umount /tmp/over'),
    ('nls_cp437', '', ''),
    ('nls_ascii', '', ''),
    ('vfat', 'dd if=/dev/zero of=/tmp/fat bs=1M count=4 && mkdosfs /tmp/fat && '
     'losetup /dev/loop1 /tmp/fat && mount -t vfat -o iocharset=ascii '
     '/dev/loop1 /tmp/vfat && echo 1 > /tmp/vfat/file',
     'umount /tmp/vfat; losetup -d /dev/loop1'),
    ('xfs', 'mount -t xfs /dev/ram0 /mnt || :', ''),
    ('btrfs', 'mount -t btrfs /dev/ram0 /mnt || :', ''),
    ('udf', 'mount -t udf /dev/ram0 /mnt || :', ''),
    ('isofs', 'mount -t iso9660 /dev/ram0 /mnt || :', ''),
    ('squashfs', 'mount -t squashfs /dev/ram0 /mnt || :', ''),
    ('sunrpc', 'mount -t rpc_pipefs ka /tmp/pipes && ls /tmp/pipes',
     'umount /tmp/pipes'),
    ('nfsd', 'mount -t nfsd ka /tmp/nfsd && cat /tmp/nfsd/versions',
     'umount /tmp/nfsd'),
    ('nfs', 'mount -t nfs 127.0.0.1:/ /mnt || :', ''),
    ('cifs', 'mount -t cifs -o ip=127.0.0.1 //127.0.0.1/ka /mnt || :', ''),
    ('binfmt_misc', 'mount -t binfmt_misc ka /tmp/binfmt && '
     'echo ":ka:E::ka::/bin/true:" > /tmp/binfmt/register',
     'echo -1 > /tmp/binfmt/ka; umount /tmp/binfmt'),
    ('configfs', 'mount -t configfs ka /tmp/config && ls /tmp/config',
     'umount /tmp/config'),
    # Others
    ('cmac', 'ka-use alg hash "cmac(aes)"', ''),
    ('xxhash_generic', 'ka-use alg hash xxhash64', ''),
    ('lz4', '', ''),
    ('crypto_user', '', ''),
    ('sd_mod', '', ''),
    ('scsi_debug', 'sleep 1; dd if=/dev/sda of=/dev/null bs=4k count=4', ''),
    ('msr', 'dd if=/dev/cpu/0/msr of=/dev/null bs=8 skip=2 count=1', ''),
    ('cpuid', 'dd if=/dev/cpu/0/cpuid of=/dev/null bs=16 count=1', ''),
    ('softdog', 'echo V > /dev/watchdog', ''),
    ('vhost_net', 'ka-use ioctl /dev/vhost-net 0xaf01', ''),
    ('uio', '', ''),
    ('nvmet', '', ''),
)
# Those of the short form: a few of each kind
SHORT = ('dummy', '8021q', 'veth', 'bridge', 'crc32c_generic', 'ext4', 'brd',
         'null_blk', 'xfs', 'nfsd')


def rows(short, found):
    """Return the rows whose modules are in FOUND; of the short form if SHORT
    is true."""
    return [row for row in ROWS if row[0] in found and
            (not short or row[0] in SHORT)]


def script(chosen):
    """Return the functions use() and undo() as a shell script."""
    lines = ['# SPDX-License-Identifier: GPL-2.0-or-later']
    uses = [(name, use) for name, use, _ in chosen]
    undos = [(name, undo) for name, _, undo in reversed(chosen)]
    for function, does in (('use', uses), ('undo', undos)):
        lines.append(f'{function}() {{')
        lines += [f'    {{ {what}; }} || echo "ka_uses: {name}: cannot '
                  f'{function}"' for name, what in does if what]
        lines += ['    :', '}']
    return '\n'.join(lines) + '\n'
