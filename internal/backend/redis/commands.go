package redis

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/lockbench/lockbench/internal/backend"
)

// answer is the reply of a redis to one command of several.
type answer struct {
	words   []string
	refused string // its error, if it is one
}

// encode is a command as it is sent.
func encode(command []string) string {
	var req strings.Builder
	fmt.Fprintf(&req, "*%d\r\n", len(command))
	for _, word := range command {
		fmt.Fprintf(&req, "$%d\r\n%s\r\n", len(word), word)
	}
	return req.String()
}

// send sends commands on one connection, and returns their answers in
// order. The commands that were carried out are counted as lockbench's own.
func send(ctx context.Context, n *backend.Node, commands ...[]string) (answers []answer, err error) {
	var req strings.Builder
	req.WriteString(login(n))
	for _, command := range commands {
		req.WriteString(encode(command))
	}
	err = n.Ask(ctx, req.String(), func(r *bufio.Reader) error {
		if err := loggedIn(r, n); err != nil {
			return err
		}
		for _, command := range commands {
			a := answer{}
			if first, err := r.Peek(1); err != nil {
				return err
			} else if first[0] == '-' {
				line, err := r.ReadString('\n')
				if err != nil {
					return err
				}
				a.refused = strings.TrimSpace(line[1:])
			} else if a.words, err = readReply(r); err != nil {
				return err
			} else {
				n.Asked(counterOf(command), 1)
			}
			answers = append(answers, a)
		}
		return nil
	})
	return answers, err
}

// order sends one command. A refusal is an error.
func order(ctx context.Context, n *backend.Node, command []string) error {
	answers, err := send(ctx, n, command)
	if err == nil && answers[0].refused != "" {
		err = errors.New("it answers " + answers[0].refused)
	}
	return err
}

// counterOf is the name under which a server counts a command.
func counterOf(command []string) string {
	name := strings.ToLower(command[0])
	if len(command) > 1 && (name == "config" || name == "client") {
		name += "|" + strings.ToLower(command[1])
	}
	return name
}

func (Backend) Put(ctx context.Context, n *backend.Node, key string) error {
	return order(ctx, n, []string{"SET", key, "1"})
}

func (Backend) Holds(ctx context.Context, n *backend.Node, key string) (bool, error) {
	answers, err := send(ctx, n, []string{"EXISTS", key})
	if err != nil {
		return false, err
	}
	if refused := answers[0].refused; refused != "" {
		return false, errors.New("it answers " + refused)
	}
	return slices.Equal(answers[0].words, []string{"1"}), nil
}

func (Backend) Flush(ctx context.Context, n *backend.Node) (how string, err error) {
	return "FLUSHALL", order(ctx, n, []string{"FLUSHALL", "SYNC"})
}

// CloseClients closes the connections of those that are neither replicas,
// masters or sentinels, nor we. (To close them by type would close those of the
// sentinels, and spare those that wait for messages.)
func (b Backend) CloseClients(ctx context.Context, _ *backend.Cluster, n *backend.Node) (closed int, err error) {
	sessions, err := b.Sessions(ctx, n)
	if err != nil {
		return 0, err
	}
	var ids []string
	for _, s := range sessions {
		ids = append(ids, s.ID)
	}
	return b.CloseSessions(ctx, n, ids)
}

// Sessions reads CLIENT LIST.
func (Backend) Sessions(ctx context.Context, n *backend.Node) (sessions []backend.Session, err error) {
	answers, err := send(ctx, n, []string{"CLIENT", "ID"}, []string{"CLIENT", "LIST"})
	if err != nil {
		return nil, err
	}
	for _, a := range answers {
		if len(a.words) != 1 {
			return nil, fmt.Errorf("it does not list its clients: %.200s", cmp.Or(a.refused, fmt.Sprintf("%q", a.words)))
		}
	}
	self, own := answers[0].words[0], ""
	for line := range strings.Lines(answers[1].words[0]) {
		client := map[string]string{}
		for _, field := range strings.Fields(line) {
			name, value, _ := strings.Cut(field, "=")
			client[name] = value
		}
		if _, err := strconv.ParseUint(client["id"], 10, 64); err != nil {
			return nil, fmt.Errorf("it lists a client by %.200q", line)
		}
		host, _, _ := net.SplitHostPort(client["addr"])
		from := client["user"] + "@" + host
		if client["id"] == self {
			own = from
			continue
		}
		if strings.ContainsAny(client["flags"], "SM") || strings.HasPrefix(client["name"], "sentinel-") {
			continue
		}
		sessions = append(sessions, backend.Session{ID: client["id"], From: from})
	}
	for i := range sessions {
		sessions[i].Own = own != "" && sessions[i].From == own
	}
	return sessions, nil
}

func (Backend) CloseSessions(ctx context.Context, n *backend.Node, ids []string) (closed int, err error) {
	var kills [][]string
	for _, id := range ids {
		kills = append(kills, []string{"CLIENT", "KILL", "ID", id})
	}
	answers, err := send(ctx, n, kills...)
	for _, a := range answers {
		if slices.Equal(a.words, []string{"1"}) {
			closed++
		}
		if strings.HasPrefix(a.refused, "NOPERM") && err == nil {
			err = errors.New(a.refused)
		}
	}
	return closed, err
}

func (b Backend) Marked(ctx context.Context, n *backend.Node) (bool, error) {
	return b.Holds(ctx, n, backend.Marker)
}
