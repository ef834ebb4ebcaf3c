#!/bin/sh
# Runs after the package is removed. The store in /var/lib/skein and the user stay: data is never
# removed with a program.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
