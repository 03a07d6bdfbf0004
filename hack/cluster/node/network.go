package node

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// Network is one /24 on which the node (.1), this machine (.2) and the pods
// (from .16) are neighbours: they reach each other without any rule or route.
type Network struct {
	Subnet netip.Prefix `json:"subnet"`
}

const firstPod = 16

// Node is the node's address, at which its API server answers too.
func (n Network) Node() netip.Addr { return n.address(1) }

// Machine is the address at which a pod reaches this machine.
func (n Network) Machine() netip.Addr { return n.address(2) }

func (n Network) pods() netip.Addr { return n.address(firstPod) }

func (n Network) address(last byte) netip.Addr {
	bytes := n.Subnet.Addr().As4()
	bytes[3] = last
	return netip.AddrFrom4(bytes)
}

func (n Network) withLength(address netip.Addr) string {
	return netip.PrefixFrom(address, n.Subnet.Bits()).String()
}

// freeNetwork takes the first /24 from 10.88.0.0 to 10.127.0.0 that overlaps with nothing in use.
func freeNetwork(used []netip.Prefix) (Network, error) {
	for second := byte(88); second <= 127; second++ {
		candidate := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, second, 0, 0}), 24)
		free := true
		for _, prefix := range used {
			free = free && !prefix.Overlaps(candidate)
		}
		if free {
			return Network{Subnet: candidate}, nil
		}
	}
	return Network{}, errors.New("no free subnet for the pods: every 10.N.0.0/24 with N from 88 to 127 is in use on this machine, see `ip route`")
}

// usedPrefixes are the subnets of this machine's addresses and routes, without the default route.
func usedPrefixes() ([]netip.Prefix, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("list this machine's addresses: %w", err)
	}
	table, err := os.ReadFile("/proc/net/route")
	if err != nil {
		return nil, fmt.Errorf("list this machine's routes: %w", err)
	}
	used, err := parseRoutes(string(table))
	if err != nil {
		return nil, err
	}
	for _, address := range addresses {
		prefix, err := netip.ParsePrefix(address.String())
		if err == nil {
			used = append(used, prefix.Masked())
		}
	}
	return used, nil
}

// parseRoutes reads /proc/net/route: destination and mask are hexadecimal, in the machine's byte order.
func parseRoutes(table string) ([]netip.Prefix, error) {
	const destination, mask = 1, 7
	var routes []netip.Prefix
	for i, line := range strings.Split(strings.TrimSpace(table), "\n") {
		fields := strings.Fields(line)
		if i == 0 || len(fields) <= mask {
			continue
		}
		address, err := parseHexadecimal(fields[destination])
		if err != nil {
			return nil, err
		}
		size, err := parseHexadecimal(fields[mask])
		if err != nil {
			return nil, err
		}
		ones, _ := net.IPMask(size[:]).Size()
		if ones > 0 {
			routes = append(routes, netip.PrefixFrom(netip.AddrFrom4(address), ones))
		}
	}
	return routes, nil
}

func parseHexadecimal(text string) ([4]byte, error) {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != 4 {
		return [4]byte{}, fmt.Errorf("%q in the table of routes is not an address", text)
	}
	var address [4]byte
	binary.NativeEndian.PutUint32(address[:], binary.BigEndian.Uint32(raw))
	return address, nil
}

// claim takes a free subnet for the cluster by giving this machine an address in
// it, on a link whose other end the node gets later. Two clusters can't take the same.
func claim(layout Layout, programs Programs) (Network, error) {
	unlock, err := lockFolder("/run")
	if err != nil {
		return Network{}, err
	}
	defer unlock()
	used, err := usedPrefixes()
	if err != nil {
		return Network{}, err
	}
	network, err := freeNetwork(used)
	if err != nil {
		return Network{}, err
	}
	link := layout.linkName()
	return network, runIP(programs.IP,
		[]string{"link", "add", link, "type", "veth", "peer", "name", layout.peerName()},
		[]string{"address", "add", network.withLength(network.Machine()), "dev", link},
	)
}

// connect moves the other end of the link into the network of the node's first process.
func connect(layout Layout, state *State) error {
	return runIP(state.Programs.IP,
		[]string{"link", "set", layout.peerName(), "netns", strconv.Itoa(state.First.PID), "name", "uplink"},
		[]string{"link", "set", layout.linkName(), "up"},
	)
}

// disconnect removes this machine's end of the link. The kernel does it too when the node ends, a little later.
func disconnect(layout Layout, state *State) error {
	link := layout.linkName()
	if !linkExists(link) {
		return nil
	}
	err := runIP(state.Programs.IP, []string{"link", "delete", link})
	if linkExists(link) {
		return err
	}
	return nil
}

func linkExists(name string) bool {
	_, err := net.InterfaceByName(name)
	return err == nil
}

// setUpInside makes the bridge of the pods in the node's own network, with the link to the machine on it.
func setUpInside(state *State) error {
	return runIP(state.Programs.IP,
		[]string{"link", "set", "lo", "up"},
		[]string{"link", "add", bridgeName, "type", "bridge"},
		[]string{"address", "add", state.Network.withLength(state.Network.Node()), "dev", bridgeName},
		[]string{"link", "set", "uplink", "master", bridgeName},
		[]string{"link", "set", "uplink", "up"},
		[]string{"link", "set", bridgeName, "up"},
		[]string{"route", "add", "default", "via", state.Network.Machine().String()},
	)
}

func runIP(program string, commands ...[]string) error {
	for _, arguments := range commands {
		output, err := exec.Command(program, arguments...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("ip %s: %w: %s", strings.Join(arguments, " "), err, strings.TrimSpace(string(output)))
		}
	}
	return nil
}
