package api_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/skein-threads/skein"
)

// writeCertificate writes a certificate with a serial number, and its key, and returns their
// paths.
func writeCertificate(t *testing.T, dir string, serial int64) (cert, key string) {
	t.Helper()
	pair, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, pair.Public(), pair)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(pair)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// serial returns the serial number of the certificate that a server shows.
func serial(t *testing.T, url string) int64 {
	t.Helper()
	conn, err := tls.Dial("tcp", strings.TrimPrefix(url, "https://"), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

// A certificate that is replaced is shown to new connections without a restart, open ones go on,
// and files that cannot be used change nothing.
func TestTLS_ReplacedCertificate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := writeCertificate(t, dir, 1)
	url := start(t, func(o *skein.Options) { o.Tenant, o.TLSCert, o.TLSKey = "acme", cert, key })
	if got := serial(t, url); got != 1 {
		t.Fatalf("the certificate %d", got)
	}
	open, err := tls.Dial("tcp", strings.TrimPrefix(url, "https://"), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	writeCertificate(t, dir, 2)
	for serial(t, url) != 2 { // until the files are looked at
	}
	if _, err := open.Write([]byte("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")); err != nil {
		t.Error(err)
	}
	if n, err := open.Read(make([]byte, 100)); err != nil || n == 0 {
		t.Errorf("an open connection: %d, %v", n, err)
	}
	if err := os.WriteFile(cert, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(1500 * time.Millisecond); time.Now().Before(end); { // longer than files are not looked at
		if got := serial(t, url); got != 2 {
			t.Fatalf("with files that cannot be used: %d", got)
		}
	}
	writeCertificate(t, dir, 3)
	for serial(t, url) != 3 {
	}
}
