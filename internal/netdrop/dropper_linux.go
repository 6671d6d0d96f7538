package netdrop

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"sync"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// Dropper holds the rules of one run, in a table of their own. Its methods are
// safe for concurrent use, and each makes its change atomically.
type Dropper struct {
	netns *os.File // nil: our own network namespace
	mu    sync.Mutex
	table *nftables.Table
	made  uint32 // rules so far, for their names
	rules map[string]rule
}

// rule is one cut: a chain that sees every packet before its socket does, and
// drops those between the pairs of the set.
type rule struct {
	chain   *nftables.Chain
	set     *nftables.Set
	counter *nftables.CounterObj
}

// Open makes the table. It works inside a namespace of the run only (see
// Enter), so that no rule can ever touch the machine's own network. The caller
// owes a Close.
func Open() (*Dropper, error) {
	if !Inside() {
		return nil, fmt.Errorf("%w: the process is not in a network namespace of its own", ErrUnavailable)
	}
	return open(nil)
}

// OpenAt makes the table in the network namespace of another process, which has to
// be another one than ours. It needs root. The rules stay as long as the namespace.
func OpenAt(pid int) (*Dropper, error) {
	path := fmt.Sprintf("/proc/%d/ns/net", pid)
	theirs, err := os.Readlink(path)
	ours, errOurs := os.Readlink("/proc/self/ns/net")
	if err := errors.Join(err, errOurs); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if ours == theirs {
		return nil, fmt.Errorf("%w: process %d is in our own network namespace", ErrUnavailable, pid)
	}
	netns, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	d, err := open(netns)
	if err != nil {
		netns.Close()
		return nil, err
	}
	return d, nil
}

func open(netns *os.File) (*Dropper, error) {
	var b [4]byte
	rand.Read(b[:])
	d := &Dropper{
		netns: netns,
		table: &nftables.Table{Name: "lockbench-" + hex.EncodeToString(b[:]), Family: nftables.TableFamilyIPv4},
		rules: map[string]rule{},
	}
	if err := d.batch(func(c *nftables.Conn) error { c.AddTable(d.table); return nil }); err != nil {
		return nil, fmt.Errorf("make a table of rules: %w", err)
	}
	return d, nil
}

// batch sends what fill puts together as one change: the kernel does all of it
// or nothing.
func (d *Dropper) batch(fill func(*nftables.Conn) error) error {
	c, err := d.connect()
	if err != nil {
		return err
	}
	if err := fill(c); err != nil {
		return err
	}
	return c.Flush()
}

func (d *Dropper) connect() (*nftables.Conn, error) {
	if d.netns == nil {
		return nftables.New()
	}
	return nftables.New(nftables.WithNetNSFd(int(d.netns.Fd())))
}

// Apply drops the packets of these pairs from now on: in those from the server
// to the client, out those of the other direction. The id names the rule for
// Lift; it must not be in force already.
func (d *Dropper) Apply(id string, pairs []Pair, in, out bool) error {
	elements, err := elementsOf(pairs)
	if err == nil && !in && !out {
		err = errors.New("neither direction is named")
	}
	if err != nil {
		return fmt.Errorf("drop packets (%s): %w", id, err)
	}
	var keys [][]field
	if in {
		keys = append(keys, []field{daddr, saddr, sport})
	}
	if out {
		keys = append(keys, []field{saddr, daddr, dport})
	}
	return d.apply(id, nftables.MustConcatSetType(nftables.TypeIPAddr, nftables.TypeIPAddr, nftables.TypeInetService), elements, keys)
}

// ApplyFrom drops all TCP packets that come from these addresses from now on. The
// id is as that of Apply.
func (d *Dropper) ApplyFrom(id string, from []netip.Addr) error {
	var elements []nftables.SetElement
	for _, a := range from {
		if !a.Is4() {
			return fmt.Errorf("drop packets (%s): %v is not an IPv4 address", id, a)
		}
		elements = append(elements, nftables.SetElement{Key: a.AsSlice()})
	}
	return d.apply(id, nftables.TypeIPAddr, elements, [][]field{{saddr}})
}

// apply drops packets of which one of the keys is an element.
func (d *Dropper) apply(id string, key nftables.SetDatatype, elements []nftables.SetElement, keys [][]field) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.table == nil {
		return fmt.Errorf("drop packets (%s): the dropper is closed", id)
	}
	if _, taken := d.rules[id]; taken {
		return fmt.Errorf("drop packets (%s): a rule of that name is in force", id)
	}
	d.made++
	r := d.newRule(fmt.Sprintf("cut-%d", d.made), d.made, key)
	err := d.batch(func(c *nftables.Conn) error {
		c.AddObj(r.counter)
		if err := c.AddSet(r.set, nil); err != nil {
			return err
		}
		// An attribute's length has 16 bits.
		for part := range slices.Chunk(elements, 500) {
			if err := c.SetAddElements(r.set, part); err != nil {
				return err
			}
		}
		c.AddChain(r.chain)
		for _, key := range keys {
			c.AddRule(&nftables.Rule{Table: d.table, Chain: r.chain, Exprs: r.drop(key...)})
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("drop packets (%s): %w", id, err)
	}
	d.rules[id] = r
	return nil
}

// newRule names the objects of a rule. All traffic of the namespace runs over
// its loopback, or comes from elsewhere, and so comes in by the input hook, whichever way it goes. A
// packet dropped there has left its sender, which gets no error; in the output
// hook the sender would get one.
func (d *Dropper) newRule(name string, id uint32, key nftables.SetDatatype) rule {
	return rule{
		chain: &nftables.Chain{
			Name: name, Table: d.table, Type: nftables.ChainTypeFilter,
			Hooknum: nftables.ChainHookInput, Priority: nftables.ChainPriorityFilter,
		},
		set: &nftables.Set{
			Name: name, Table: d.table, ID: id, Concatenation: key != nftables.TypeIPAddr, KeyType: key,
		},
		counter: &nftables.CounterObj{Name: name, Table: d.table},
	}
}

// elementsOf are the pairs as keys of a set: client, server, the server's port,
// each filled up to four bytes.
func elementsOf(pairs []Pair) ([]nftables.SetElement, error) {
	if len(pairs) == 0 {
		return nil, errors.New("there is no pair of a client and a server")
	}
	var elements []nftables.SetElement
	seen := map[Pair]bool{}
	for _, p := range pairs {
		if !p.Client.Is4() || !p.Server.Addr().Is4() || p.Server.Port() == 0 {
			return nil, fmt.Errorf("client %v and server %v: want IPv4 addresses, and a port of the server", p.Client, p.Server)
		}
		if seen[p] {
			continue // the kernel refuses a key that is there twice
		}
		seen[p] = true
		client, server, port := p.Client.As4(), p.Server.Addr().As4(), p.Server.Port()
		key := slices.Concat(client[:], server[:], []byte{byte(port >> 8), byte(port), 0, 0})
		elements = append(elements, nftables.SetElement{Key: key})
	}
	return elements, nil
}

// field is where in a packet a part of the key lies.
type field struct {
	base   expr.PayloadBase
	offset uint32
	length uint32
}

var (
	saddr = field{expr.PayloadBaseNetworkHeader, 12, 4}
	daddr = field{expr.PayloadBaseNetworkHeader, 16, 4}
	sport = field{expr.PayloadBaseTransportHeader, 0, 2}
	dport = field{expr.PayloadBaseTransportHeader, 2, 2}
)

// drop matches TCP packets whose fields are a key of the set, counts and drops
// them.
func (r rule) drop(key ...field) []expr.Any {
	exprs := []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_TCP}},
	}
	for i, f := range key {
		exprs = append(exprs, &expr.Payload{
			OperationType: expr.PayloadLoad, DestRegister: unix.NFT_REG32_00 + uint32(i), Base: f.base, Offset: f.offset, Len: f.length,
		})
	}
	return append(exprs,
		&expr.Lookup{SourceRegister: unix.NFT_REG32_00, SetName: r.set.Name, SetID: r.set.ID},
		&expr.Objref{Type: int(nftables.ObjTypeCounter), Name: r.counter.Name},
		&expr.Verdict{Kind: expr.VerdictDrop},
	)
}

// Lift removes the rule of that name and returns how many packets it dropped.
// Packets pass from the moment that it is gone, even if the count then fails.
func (d *Dropper) Lift(id string) (packets int64, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r, ok := d.rules[id]
	if !ok {
		return 0, fmt.Errorf("let packets pass (%s): there is no such rule", id)
	}
	if err := d.batch(func(c *nftables.Conn) error { c.DelChain(r.chain); return nil }); err != nil {
		return 0, fmt.Errorf("let packets pass (%s): %w", id, err)
	}
	delete(d.rules, id)
	// Nothing counts any more, so that what is read now is all.
	packets, err = d.count(r)
	err = errors.Join(err, d.batch(func(c *nftables.Conn) error {
		c.DeleteObject(r.counter)
		c.DelSet(r.set)
		return nil
	}))
	if err != nil {
		return packets, fmt.Errorf("count the packets dropped (%s): %w", id, err)
	}
	return packets, nil
}

func (d *Dropper) count(r rule) (int64, error) {
	c, err := d.connect()
	if err != nil {
		return 0, err
	}
	o, err := c.GetObject(r.counter)
	if err != nil {
		return 0, err
	}
	counter, ok := o.(*nftables.CounterObj)
	if !ok {
		return 0, fmt.Errorf("the kernel shows a %T for the counter", o)
	}
	return int64(counter.Packets), nil
}

// Close takes away every rule there is, and the table.
func (d *Dropper) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.table == nil {
		return nil
	}
	if err := d.batch(func(c *nftables.Conn) error { c.DelTable(d.table); return nil }); err != nil {
		return fmt.Errorf("remove the table of rules: %w", err)
	}
	d.table, d.rules = nil, nil
	if d.netns != nil {
		return d.netns.Close()
	}
	return nil
}
