package netdrop

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// Dropper holds the rules of one run, in a table of their own. Its methods are
// safe for concurrent use, and each makes its change atomically.
type Dropper struct {
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
	return open()
}

func open() (*Dropper, error) {
	var b [4]byte
	rand.Read(b[:])
	d := &Dropper{
		table: &nftables.Table{Name: "lockbench-" + hex.EncodeToString(b[:]), Family: nftables.TableFamilyIPv4},
		rules: map[string]rule{},
	}
	if err := batch(func(c *nftables.Conn) error { c.AddTable(d.table); return nil }); err != nil {
		return nil, fmt.Errorf("make a table of rules: %w", err)
	}
	return d, nil
}

// batch sends what fill puts together as one change: the kernel does all of it
// or nothing.
func batch(fill func(*nftables.Conn) error) error {
	c, err := nftables.New()
	if err != nil {
		return err
	}
	if err := fill(c); err != nil {
		return err
	}
	return c.Flush()
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
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.table == nil {
		return fmt.Errorf("drop packets (%s): the dropper is closed", id)
	}
	if _, taken := d.rules[id]; taken {
		return fmt.Errorf("drop packets (%s): a rule of that name is in force", id)
	}
	d.made++
	r := d.newRule(fmt.Sprintf("cut-%d", d.made), d.made)
	err = batch(func(c *nftables.Conn) error {
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
		if in {
			c.AddRule(&nftables.Rule{Table: d.table, Chain: r.chain, Exprs: r.drop(daddr, saddr, sport)})
		}
		if out {
			c.AddRule(&nftables.Rule{Table: d.table, Chain: r.chain, Exprs: r.drop(saddr, daddr, dport)})
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
// its loopback and so comes in by the input hook, whichever way it goes. A
// packet dropped there has left its sender, which gets no error; in the output
// hook the sender would get one.
func (d *Dropper) newRule(name string, id uint32) rule {
	return rule{
		chain: &nftables.Chain{
			Name: name, Table: d.table, Type: nftables.ChainTypeFilter,
			Hooknum: nftables.ChainHookInput, Priority: nftables.ChainPriorityFilter,
		},
		set: &nftables.Set{
			Name: name, Table: d.table, ID: id, Concatenation: true,
			KeyType: nftables.MustConcatSetType(nftables.TypeIPAddr, nftables.TypeIPAddr, nftables.TypeInetService),
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
	if err := batch(func(c *nftables.Conn) error { c.DelChain(r.chain); return nil }); err != nil {
		return 0, fmt.Errorf("let packets pass (%s): %w", id, err)
	}
	delete(d.rules, id)
	// Nothing counts any more, so that what is read now is all.
	packets, err = r.count()
	err = errors.Join(err, batch(func(c *nftables.Conn) error {
		c.DeleteObject(r.counter)
		c.DelSet(r.set)
		return nil
	}))
	if err != nil {
		return packets, fmt.Errorf("count the packets dropped (%s): %w", id, err)
	}
	return packets, nil
}

func (r rule) count() (int64, error) {
	c, err := nftables.New()
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
	if err := batch(func(c *nftables.Conn) error { c.DelTable(d.table); return nil }); err != nil {
		return fmt.Errorf("remove the table of rules: %w", err)
	}
	d.table, d.rules = nil, nil
	return nil
}
