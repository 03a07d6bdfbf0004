package node

import (
	"io"
	"log"
	"net"
	"strconv"
)

// forward passes on connections from the machine's loopback to the API server. The
// listener was opened outside and keeps belonging to the machine's network.
// The API is then at 127.0.0.1 for every client, which no proxy setting diverts.
func forward(listener net.Listener) {
	for {
		outside, err := listener.Accept()
		if err != nil {
			log.Printf("the machine's port of the API server is closed: %v", err)
			return
		}
		go func() {
			inside, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(apiPort)))
			if err != nil {
				_ = outside.Close()
				return
			}
			go pass(inside, outside)
			pass(outside, inside)
		}()
	}
}

// pass copies until either side ends, then closes both.
func pass(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_ = to.Close()
	_ = from.Close()
}
