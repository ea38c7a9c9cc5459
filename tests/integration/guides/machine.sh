# shellcheck shell=bash
# Makes a machine that nothing else uses, and runs a program in it: machine.sh DIRECTORY PROGRAM [ARGUMENT...]
# Runs as root in mount, network, process and host name namespaces of its own.
#
# The root is that of this machine under a layer in memory, so every path can be written and nothing stays. Clade is
# installed as its package does it. `systemctl` starts what the units say: there is no systemd to ask.
set -eu
directory=$1
shift

mount -t tmpfs -o mode=0755 tmpfs "$directory"
mkdir "$directory/upper" "$directory/work" "$directory/root"
mount -t overlay -o "lowerdir=/,upperdir=$directory/upper,workdir=$directory/work" overlay "$directory/root"
root=$directory/root
# What is mounted below the root is not in the layer.
for mounted in /dev /sys; do
    mount --rbind "$mounted" "$root$mounted"
done
mount -t proc proc "$root/proc"
[ -e "$root$GUIDE_ROOT/Cargo.toml" ] || { mkdir -p "$root$GUIDE_ROOT" && mount --bind "$GUIDE_ROOT" "$root$GUIDE_ROOT"; }
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t tmpfs -o mode=0755 tmpfs "$root/run"

ip link set lo up
hostname puppet.example.com
echo '127.0.0.1 localhost puppet.example.com puppet' >"$root/etc/hosts"

mkdir -p "$root/home/ada" "$root/etc/clade"
touch "$root/usr/bin/clade"
mount --bind "$GUIDE_PROGRAM" "$root/usr/bin/clade"
if ! grep -q ^clade: "$root/etc/passwd"; then
    echo 'clade:x:64233:64233:Clade:/var/lib/clade:/usr/sbin/nologin' >>"$root/etc/passwd"
    echo 'clade:x:64233:' >>"$root/etc/group"
fi
cp "$GUIDE_ROOT/packaging/clade.yaml" "$root/etc/clade/clade.yaml"
mkdir -p "$root/lib/systemd/system"
cp "$GUIDE_ROOT/examples/systemd/clade.service" "$root/lib/systemd/system/clade.service"
rm -f "$root/usr/bin/systemctl"
cp "$GUIDE_ROOT/tests/integration/guides/systemctl" "$root/usr/bin/systemctl"
chmod 0755 "$root/usr/bin/systemctl"

exec chroot "$root" "$@"
