#!/bin/sh
# Runs after the package is installed or upgraded: a user for Skein, and the service is known.
set -e
if ! getent passwd skein >/dev/null; then
	useradd --system --user-group --home-dir /var/lib/skein --no-create-home --shell /usr/sbin/nologin skein
fi
chown root:skein /etc/skein /etc/skein/skein.env
chmod 0750 /etc/skein
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart skein.service
fi
