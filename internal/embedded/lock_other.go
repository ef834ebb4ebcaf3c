//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package embedded

import (
	"errors"
	"os"
)

// tryLock refuses: without a lock two servers could destroy one store.
func tryLock(*os.File) error {
	return errors.New("locking a store is not supported on this system; run nats-server by itself and connect to it")
}
