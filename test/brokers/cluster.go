package brokers

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/messaginginbox/operator/test/certificates"
	"github.com/messaginginbox/operator/test/process"
)

// slots of a cluster, over which the keys are spread.
const slots = 16384

// RedisCluster are three masters that share the slots evenly.
type RedisCluster struct {
	nodes       []*Redis
	certificate *certificates.Certificate // nil: no TLS
}

// StartRedisCluster returns once the nodes serve all slots. With a certificate they speak only TLS, also among themselves.
func StartRedisCluster(ctx context.Context, certificate *certificates.Certificate) (*RedisCluster, error) {
	c := &RedisCluster{certificate: certificate}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *RedisCluster) start(ctx context.Context) error {
	const count = 3
	buses, err := process.FreePorts(ctx, host, count)
	if err != nil {
		return err
	}
	for position, bus := range buses {
		settings := []string{"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-port", strconv.Itoa(bus)}
		if c.certificate != nil {
			settings = append(settings, "--tls-cluster", "yes")
		}
		node, startErr := startRedis(ctx, c.certificate, settings)
		if startErr != nil {
			return startErr
		}
		c.nodes = append(c.nodes, node)
		client := node.Client()
		failures := []error{
			client.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", position+1).Err(), // two with one epoch would first have to agree
			client.ClusterAddSlotsRange(ctx, position*slots/count, (position+1)*slots/count-1).Err(),
		}
		if position > 0 {
			failures = append(failures, client.Do(ctx, "CLUSTER", "MEET", host, c.nodes[0].port, buses[0]).Err())
		}
		if err = errors.Join(append(failures, client.Close())...); err != nil {
			return err
		}
	}
	for _, node := range c.nodes {
		if err = await(ctx, "cluster", node.process, node.servesAllSlots); err != nil {
			return err
		}
	}
	return nil
}

func (s *Redis) servesAllSlots(ctx context.Context) (bool, error) {
	client := s.Client()
	state, err := client.ClusterInfo(ctx).Result()
	return strings.Contains(state, "cluster_state:ok"), errors.Join(err, client.Close())
}

// Nodes of the cluster.
func (c *RedisCluster) Nodes() []*Redis { return c.nodes }

// Owner is the node that has the key.
func (c *RedisCluster) Owner(ctx context.Context, key string) (*Redis, error) {
	client := c.nodes[0].Client()
	slot, err := client.ClusterKeySlot(ctx, key).Result()
	owner := 0
	for int(slot) >= (owner+1)*slots/len(c.nodes) {
		owner++
	}
	return c.nodes[owner], errors.Join(err, client.Close())
}

// Client finds the node of each key. Close it.
func (c *RedisCluster) Client() *redis.ClusterClient {
	options := &redis.ClusterOptions{Addrs: []string{c.nodes[0].Address()}, DisableIdentity: true}
	if c.certificate != nil {
		options.TLSConfig = c.certificate.ClientTLS()
	}
	return redis.NewClusterClient(options)
}

// Stop ends the nodes and removes their files.
func (c *RedisCluster) Stop() error {
	var failures []error
	for _, node := range c.nodes {
		failures = append(failures, node.Stop())
	}
	return errors.Join(failures...)
}
