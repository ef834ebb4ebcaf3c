//go:build !linux

package faults_test

import (
	"testing"

	"github.com/skein-threads/skein/dev/cluster"
)

func ownNetwork(t *testing.T) (*network, [cluster.Servers]cluster.Place) {
	t.Helper()
	t.Skip("network namespaces are Linux's")
	return nil, [cluster.Servers]cluster.Place{}
}
