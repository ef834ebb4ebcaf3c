package main

import (
	"bytes"
	"strings"
	"testing"
)

// removal installs a package in $root, starts the service, writes to it, and removes the package in
// steps. In place of systemd, which runs nowhere but on a machine of its own, a program notes what it is
// asked for and does what stops the service.
const removal = `
mkdir -p $root/run/systemd/system $root/var/lib/skein
chroot $root chown skein:skein /var/lib/skein
cat >$root/usr/bin/systemctl.new <<'END'
#!/bin/sh
echo "$*" >>/tmp/asked
if [ "$*" = "disable --now skein.service" ]; then
	kill -INT "$(cat /tmp/pid)"
	tail --pid="$(cat /tmp/pid)" -f /dev/null
fi
END
chmod 755 $root/usr/bin/systemctl.new
mv $root/usr/bin/systemctl.new $root/usr/bin/systemctl
mkfifo $root/tmp/said
trap 'kill $(cat $root/tmp/pid) 2>/dev/null || true' EXIT

start() {
	chroot --userspec=skein:skein $root /usr/bin/skein serve --store /var/lib/skein --nats-listen 127.0.0.1:0 --http-listen none >$root/tmp/said &
	echo $! >$root/tmp/pid
	exec 3<$root/tmp/said
	read -r ready <&3
	SKEIN_SERVER=$(echo "$ready" | sed -n 's/.*nats \(nats:[^,]*\).*/\1/p')
	export SKEIN_SERVER
}
ended() {
	grep -qx 'disable --now skein.service' $root/tmp/asked
	if kill -0 "$(cat $root/tmp/pid)" 2>/dev/null; then echo "the service runs on" >&2; exit 1; fi
}
kept() {
	test ! -e $root/usr/bin/skein
	test ! -e $root/usr/lib/systemd/system/skein.service
	test "$(chroot $root stat -c '%U' /var/lib/skein)" = skein
	chroot $root getent passwd skein >&2
}
start
chroot $root /usr/bin/skein thread create --tenant acme --key kept --title Kept >&2
echo SKEIN_TENANT=acme >>$root/etc/skein/skein.env
`

// again starts what was installed again: it finds what the first one has stored. The page says how to
// delete that.
const again = `
start
chroot $root /usr/bin/skein thread get key:kept --tenant acme
kill -INT "$(cat $root/tmp/pid)"
wait "$(cat $root/tmp/pid)"
chroot $root sh -c 'rm -rf /var/lib/skein /etc/skein && userdel skein' >&2
if chroot $root getent passwd skein >&2; then exit 1; fi
`

// Who removes a package has its service stopped, and keeps what it stored and its user.
func testRemoved(t *testing.T, install, steps, file string) {
	t.Helper()
	var told bytes.Buffer
	cmd := apart(t, "install() {"+install+"}\ninstall \"$@\"\n"+removal+steps+"install \"$@\"\n"+again, file)
	cmd.Stderr = &told
	if out, err := cmd.Output(); err != nil || !strings.Contains(string(out), "Kept") {
		t.Errorf("removed and installed again: %v %s\n%s", err, out, told.String())
	}
}

// removesDebian removes a Debian package, and then what it leaves behind.
const removesDebian = `
chroot $root dpkg --no-triggers --remove skein >&2
ended; kept
grep -qx SKEIN_TENANT=acme $root/etc/skein/skein.env
chroot $root dpkg --no-triggers --purge skein >&2
kept
test ! -e $root/etc/skein/skein.env
`

// removesRPM removes an RPM package.
const removesRPM = `
chroot $root rpm -e skein >&2
ended; kept
test ! -e $root/etc/skein/skein.env
grep -qx SKEIN_TENANT=acme $root/etc/skein/skein.env.rpmsave
`
