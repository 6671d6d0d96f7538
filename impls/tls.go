package impls

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"time"
)

// TLS is how clients encrypt their connections and know the servers. The texts
// are PEM; those left out are the system's or none.
type TLS struct {
	CA, Certificate, Key string
	ServerName           string // "": the host of the address
}

// Config reads the certificates.
func (t *TLS) Config() (*tls.Config, error) {
	if t == nil {
		return nil, nil
	}
	cfg := &tls.Config{ServerName: t.ServerName, MinVersion: tls.VersionTLS12}
	if t.CA != "" {
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM([]byte(t.CA)) {
			return nil, errors.New("the CA file has no certificate in PEM")
		}
	}
	if t.Certificate == "" && t.Key == "" {
		return cfg, nil
	}
	own, err := tls.X509KeyPair([]byte(t.Certificate), []byte(t.Key))
	if err != nil {
		return nil, fmt.Errorf("the client's certificate and key: %w", err)
	}
	if end := own.Leaf.NotAfter; time.Now().After(end) {
		return nil, fmt.Errorf("the client's certificate expired on %s", end.UTC().Format(time.RFC3339))
	}
	cfg.Certificates = []tls.Certificate{own}
	return cfg, nil
}

// TLSFor is the encryption of connections to address; nil without encryption.
func (c Config) TLSFor(address string) *tls.Config { return tlsFor(c.TLS, address) }

func tlsFor(cfg *tls.Config, address string) *tls.Config {
	if cfg == nil || cfg.ServerName != "" {
		return cfg
	}
	own := cfg.Clone()
	if host, _, err := net.SplitHostPort(address); err == nil {
		own.ServerName = host
	}
	return own
}

// Encrypted is dial with a TLS handshake after it, for drivers that know no TLS;
// dial itself without encryption.
func Encrypted(dial DialFunc, cfg *tls.Config) DialFunc {
	if cfg == nil {
		return dial
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		raw, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		conn := tls.Client(raw, tlsFor(cfg, address))
		if err := conn.HandshakeContext(ctx); err != nil {
			_ = raw.Close()
			return nil, fmt.Errorf("TLS handshake with %s: %w", address, err)
		}
		return conn, nil
	}
}
