#!/bin/sh
# Runs before the package is removed, and on Red Hat's systems before the old one of an upgrade is.
set -e
case "$1" in
upgrade | failed-upgrade | 1) exit 0 ;;
esac
if [ -d /run/systemd/system ]; then
	systemctl disable --now skein.service
fi
