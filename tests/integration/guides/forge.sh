# shellcheck shell=bash
# Stands in for a forge on a machine that a guide is run on: forge.sh SSHD BRANCH
# The host git.example.com, with the repository puppet/groups.git for the user git, over ssh. The key that the guide
# makes is a deploy key as soon as its file is there.
set -eu
sshd=$1
branch=$2
home=/srv/git

echo '127.0.0.1 git.example.com' >>/etc/hosts
if ! grep -q ^git: /etc/passwd; then
    echo "git:x:64234:64234:Git:$home:/bin/sh" >>/etc/passwd
    echo 'git:x:64234:' >>/etc/group
fi
mkdir -p "$home/work/groups" /puppet /run/sshd
git init -q -b "$branch" "$home/work"
printf 'name: Webservers\nrule: name ~ "^web"\nclasses: {role::web: {}}\n' >"$home/work/groups/web.yaml"
git -C "$home/work" add .
git -C "$home/work" commit -q -m 'Add the web servers'
git clone -q --bare "$home/work" /puppet/groups.git
chown -R git:git /puppet "$home"

ssh-keygen -q -t ed25519 -N '' -f "$home/host_key"
cat >"$home/sshd_config" <<END
Port 22
ListenAddress 127.0.0.1
HostKey $home/host_key
AuthorizedKeysFile /home/ada/clade-forge/deploy-key.pub
StrictModes no
UsePAM no
PasswordAuthentication no
PidFile none
END
"$sshd" -f "$home/sshd_config"
