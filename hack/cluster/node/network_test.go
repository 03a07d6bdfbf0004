package node

import (
	"net/netip"
	"testing"
)

func prefixes(texts ...string) []netip.Prefix {
	parsed := make([]netip.Prefix, 0, len(texts))
	for _, text := range texts {
		parsed = append(parsed, netip.MustParsePrefix(text))
	}
	return parsed
}

func TestFreeNetworkOverlapsWithNothingInUse(t *testing.T) {
	for name, row := range map[string]struct {
		used []netip.Prefix
		want string
	}{
		"nothing in use":                {nil, "10.88.0.0/24"},
		"another cluster":               {prefixes("10.88.0.0/24"), "10.89.0.0/24"},
		"a wider network":               {prefixes("10.88.0.0/13"), "10.96.0.0/24"},
		"one address inside":            {prefixes("10.88.0.77/32"), "10.89.0.0/24"},
		"a neighbour":                   {prefixes("10.88.1.0/24"), "10.88.0.0/24"},
		"networks elsewhere, also IPv6": {prefixes("192.0.2.0/24", "172.17.0.0/16", "fd00::/64"), "10.88.0.0/24"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := freeNetwork(row.used)
			if err != nil || got.Subnet.String() != row.want {
				t.Errorf("%s, %v; want %s", got.Subnet, err, row.want)
			}
		})
	}
	if got, err := freeNetwork(prefixes("10.0.0.0/8")); err == nil {
		t.Errorf("all of 10.0.0.0/8 is in use: %s, want an error", got.Subnet)
	}
}

func TestAddressesOfTheNetwork(t *testing.T) {
	network := Network{Subnet: netip.MustParsePrefix("10.90.0.0/24")}
	if network.Node().String() != "10.90.0.1" || network.Machine().String() != "10.90.0.2" || network.pods().String() != "10.90.0.16" {
		t.Errorf("node %s, machine %s, first pod %s", network.Node(), network.Machine(), network.pods())
	}
	if got := network.withLength(network.Machine()); got != "10.90.0.2/24" {
		t.Errorf("machine with length %s", got)
	}
}

func TestNoServiceAddressIsAPodAddress(t *testing.T) {
	services := netip.MustParsePrefix(serviceSubnet)
	if !services.Contains(netip.MustParseAddr(serviceAPI)) {
		t.Errorf("%s is not in %s", serviceAPI, services)
	}
	for used := []netip.Prefix(nil); ; {
		network, err := freeNetwork(used)
		if err != nil {
			break
		}
		if network.Subnet.Overlaps(services) {
			t.Errorf("%s overlaps with the services' %s", network.Subnet, services)
		}
		used = append(used, network.Subnet)
	}
}

func TestParseRoutesLeavesOutTheDefaultRoute(t *testing.T) {
	const table = `Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
eth0	00000000	010200C0	0003	0	0	0	00000000	0	0	0
eth0	000200C0	00000000	0001	0	0	0	00FFFFFF	0	0	0
inbox1	0000580A	00000000	0001	0	0	0	00FFFFFF	0	0	0
`
	got, err := parseRoutes(table)
	if err != nil {
		t.Fatal(err)
	}
	want := prefixes("192.0.2.0/24", "10.88.0.0/24")
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("routes %v, want %v", got, want)
	}
	if _, err := parseRoutes("header\neth0 XYZ 0 0 0 0 0 0 0 0 0\n"); err == nil {
		t.Error("a broken table must be refused")
	}
}
