package embedded

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/nats-io/nats-server/v2/server"
)

// fromConf returns options with the part of the configuration file that applies: who may
// connect and what they may do, and how connections are protected.
func (o Options) fromConf() (*server.Options, error) {
	if o.Conf == "" {
		return &server.Options{}, nil
	}
	c, err := server.ProcessConfigFile(o.Conf)
	if err != nil {
		return nil, &ConfError{File: o.Conf, Err: err}
	}
	// The whole file is kept, since much of authorization is not visible outside
	// the server's package; what would open another door is closed.
	c.Cluster, c.Gateway, c.LeafNode = server.ClusterOpts{}, server.GatewayOpts{}, server.LeafNodeOpts{}
	c.Websocket, c.MQTT, c.Routes = server.WebsocketOpts{}, server.MQTTOpts{}, nil
	c.HTTPPort, c.HTTPSPort, c.ProfPort = 0, 0, 0
	c.LogFile, c.Syslog, c.PidFile, c.PortsFileDir = "", false, "", ""
	if !authorizes(c) {
		return nil, &ConfError{File: o.Conf, Err: errors.New("it says nothing of who may connect")}
	}
	return c, nil
}

// authorizes reports whether clients must authenticate.
func authorizes(o *server.Options) bool {
	if o.NoAuthUser != "" {
		return false
	}
	return len(o.TrustedOperators) > 0 || len(o.Users) > 0 || len(o.Nkeys) > 0 || o.Username != "" || o.Authorization != ""
}

// checkAccount refuses a store in which another account has streams, and the
// one that is to hold them has none.
func (o Options) checkAccount() error {
	list, err := os.ReadDir(filepath.Join(o.StoreDir, server.JetStreamStoreDir))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return nil // nats-server itself says what is wrong
	}
	other := ""
	for _, entry := range list {
		if streams, err := os.ReadDir(filepath.Join(o.StoreDir, server.JetStreamStoreDir, entry.Name(), "streams")); err == nil && len(streams) > 0 {
			if entry.Name() == o.Account {
				return nil
			}
			other = entry.Name()
		}
	}
	if other == "" {
		return nil
	}
	return &OtherAccountError{Dir: filepath.Join(o.StoreDir, server.JetStreamStoreDir), Account: o.Account, Other: other}
}
