package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
	"github.com/go-sql-driver/mysql"
	"github.com/go-zookeeper/zk"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// loop is the driver calls of one acquire and release, and nothing else. The
// drivers are set as the recipes set them, requests have the same timeout, and
// keys and tokens are as long as theirs, so that the difference is ours. That
// both sides send the same is seen in the servers' counters, whose growth per
// pair stands in the table.
type loop interface {
	pair(ctx context.Context) error
	close() error
}

func openLoop(ctx context.Context, s bareSpec, key string) (loop, error) {
	random := make([]byte, 16)
	if _, err := rand.Read(random); err != nil {
		return nil, err
	}
	token := hex.EncodeToString(random)
	switch s.Recipe {
	case "redis/token":
		return openRedis(ctx, s, key, token)
	case "memcached/cas":
		mc := memcache.New(s.Address)
		mc.Timeout, mc.MaxIdleConns = timeout, 1
		return &memcachedLoop{mc, key, []byte(token)}, mc.Ping()
	case "mysql/lease-row":
		return openMySQL(ctx, s, key, token)
	case "etcd/mutex":
		return openEtcd(ctx, s, key, token)
	case "zookeeper/sequence":
		return openZooKeeper(s, key, token)
	}
	return nil, fmt.Errorf("no bare loop for %s", s.Recipe)
}

type redisLoop struct {
	rdb        *redis.Client
	script     *redis.Script
	key, token string
}

// releaseScript is the recipe's.
const releaseScript = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
return redis.call('DEL', KEYS[1])
`

func openRedis(ctx context.Context, s bareSpec, key, token string) (loop, error) {
	l := &redisLoop{
		rdb: redis.NewClient(&redis.Options{
			Addr: s.Address, MaxRetries: -1, DialerRetries: 1, ContextTimeoutEnabled: true, PoolSize: 2, Protocol: 2, DisableIdentity: true,
			DialTimeout: timeout, ReadTimeout: timeout, WriteTimeout: timeout, PoolTimeout: timeout,
			ReadBufferSize: 4 << 10, WriteBufferSize: 4 << 10,
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		}),
		script: redis.NewScript(releaseScript),
		key:    key, token: token,
	}
	return l, l.script.Load(ctx, l.rdb).Err()
}

func (l *redisLoop) pair(ctx context.Context) error {
	if won, err := l.rdb.SetNX(ctx, l.key, l.token, ttl).Result(); err != nil || !won {
		return fmt.Errorf("set: %v %w", won, err)
	}
	if n, err := l.script.Run(ctx, l.rdb, []string{l.key}, l.token).Int64(); err != nil || n != 1 {
		return fmt.Errorf("delete: %d %w", n, err)
	}
	return nil
}

func (l *redisLoop) close() error { return l.rdb.Close() }

type memcachedLoop struct {
	mc    *memcache.Client
	key   string
	token []byte
}

func (l *memcachedLoop) pair(context.Context) error {
	if err := l.mc.Add(&memcache.Item{Key: l.key, Value: l.token, Expiration: 5}); err != nil {
		return err
	}
	item, err := l.mc.Get(l.key)
	if err != nil {
		return err
	}
	item.Value, item.Expiration = nil, -1
	return l.mc.CompareAndSwap(item)
}

func (l *memcachedLoop) close() error { return l.mc.Close() }

type mysqlLoop struct {
	db         *sql.DB
	conn       *sql.Conn
	key, token string
}

func openMySQL(ctx context.Context, s bareSpec, key, token string) (loop, error) {
	conf := mysql.NewConfig()
	conf.Net, conf.Addr = "tcp", s.Address
	conf.User, conf.Passwd, conf.DBName = s.Account.User, s.Account.Password, s.Account.Database
	conf.InterpolateParams, conf.ClientFoundRows = true, true
	conf.Timeout, conf.ReadTimeout, conf.WriteTimeout = timeout, timeout, timeout
	connector, err := mysql.NewConnector(conf)
	if err != nil {
		return nil, err
	}
	l := &mysqlLoop{db: sql.OpenDB(connector), key: key, token: token}
	l.conn, err = l.db.Conn(ctx)
	return l, err
}

func (l *mysqlLoop) pair(ctx context.Context) error {
	// With a context that can end the driver hands each statement to another
	// goroutine and back. The recipe avoids that, and so does this loop.
	ctx = context.WithoutCancel(ctx)
	res, err := l.conn.ExecContext(ctx, `UPDATE lockbench_lease
SET owner = ?, fence = LAST_INSERT_ID(fence + 1), expires = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND
WHERE name = ? AND (owner = '' OR expires < UTC_TIMESTAMP(6))`, l.token, ttl.Microseconds(), l.key)
	if err != nil {
		return err
	}
	fence, _ := res.LastInsertId()
	_, err = l.conn.ExecContext(ctx, `UPDATE lockbench_lease
SET owner = ''
WHERE name = ? AND owner = ? AND fence = ?`, l.key, l.token, fence)
	return err
}

func (l *mysqlLoop) close() error {
	if err := l.conn.Close(); err != nil {
		return err
	}
	return l.db.Close()
}

type etcdLoop struct {
	cli               *clientv3.Client
	lease             clientv3.LeaseID
	prefix, key, void string
}

func openEtcd(ctx context.Context, s bareSpec, key, token string) (loop, error) {
	cli, err := clientv3.New(clientv3.Config{
		Endpoints: []string{s.Address}, Logger: zap.NewNop(),
		DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: timeout,
	})
	if err != nil {
		return nil, err
	}
	grant, err := cli.Grant(ctx, int64(10*time.Minute/time.Second))
	if err != nil {
		return nil, errors.Join(err, cli.Close())
	}
	prefix := "lockbench/lock/" + url.PathEscape(key) + "/"
	return &etcdLoop{cli, grant.ID, prefix, prefix + token, "lockbench/void/" + token}, nil
}

func (l *etcdLoop) pair(ctx context.Context) error {
	// This driver's requests have no timeout but their context's.
	put, cancel := context.WithTimeout(ctx, timeout)
	res, err := l.cli.Txn(put).
		If(clientv3.Compare(clientv3.CreateRevision(l.void), "=", 0)).
		Then(clientv3.OpPut(l.key, "", clientv3.WithLease(l.lease)),
			clientv3.OpGet(l.prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithLimit(2),
				clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortDescend))).
		Commit()
	cancel()
	if err != nil || !res.Succeeded {
		return fmt.Errorf("put: %w", err)
	}
	remove, cancel := context.WithTimeout(ctx, timeout)
	gone, err := l.cli.Delete(remove, l.key)
	cancel()
	if err != nil || gone.Deleted != 1 {
		return fmt.Errorf("delete: %w", err)
	}
	return nil
}

func (l *etcdLoop) close() error { return l.cli.Close() }

type zkLoop struct {
	conn        *zk.Conn
	dir, prefix string
}

type silent struct{}

func (silent) Printf(string, ...any) {}

func openZooKeeper(s bareSpec, key, token string) (loop, error) {
	conn, events, err := zk.Connect([]string{s.Address}, ttl, zk.WithLogInfo(false), zk.WithLogger(silent{}))
	if err != nil {
		return nil, err
	}
	for e := range events {
		if e.State == zk.StateHasSession {
			break
		}
	}
	dir := "/lockbench/lock-" + url.PathEscape(key)
	return &zkLoop{conn, dir, dir + "/" + token + "-"}, nil
}

func (l *zkLoop) pair(context.Context) error {
	node, err := l.conn.Create(l.prefix, nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	if err != nil {
		return fmt.Errorf("create: %w", err)
	}
	if _, _, err := l.conn.Children(l.dir); err != nil {
		return fmt.Errorf("list: %w", err)
	}
	return l.conn.Delete(node, -1)
}

func (l *zkLoop) close() error {
	l.conn.Close()
	return nil
}
