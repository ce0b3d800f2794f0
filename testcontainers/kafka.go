package containers

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/segmentio/kafka-go"
	"github.com/testcontainers/testcontainers-go"
)

const kafkaImage = "apache/kafka:4.1.2"

// Kafka is one real Kafka broker (KRaft, broker and controller in one process).
type Kafka struct {
	*Container
	topics atomic.Int64
}

// StartKafka starts a broker for this test alone.
func StartKafka(tb testing.TB) *Kafka {
	tb.Helper()
	return start(tb, openKafka)
}

// SharedKafka returns the package's broker.
func SharedKafka(tb testing.TB) *Kafka {
	tb.Helper()
	return share(tb, openKafka)
}

func openKafka(ctx context.Context) (*Kafka, error) {
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	addr := "127.0.0.1:" + strconv.Itoa(ports[0])
	c, err := run(ctx, spec{
		image: kafkaImage, port: 9092, hostPorts: ports,
		options: []testcontainers.ContainerCustomizer{testcontainers.WithEnv(map[string]string{
			"KAFKA_NODE_ID":                                  "1",
			"KAFKA_PROCESS_ROLES":                            "broker,controller",
			"KAFKA_LISTENERS":                                "PLAINTEXT://:9092,BROKER://:9094,CONTROLLER://:9093",
			"KAFKA_ADVERTISED_LISTENERS":                     "PLAINTEXT://" + addr + ",BROKER://localhost:9094",
			"KAFKA_LISTENER_SECURITY_PROTOCOL_MAP":           "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,BROKER:PLAINTEXT",
			"KAFKA_INTER_BROKER_LISTENER_NAME":               "BROKER",
			"KAFKA_CONTROLLER_LISTENER_NAMES":                "CONTROLLER",
			"KAFKA_CONTROLLER_QUORUM_VOTERS":                 "1@localhost:9093",
			"KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR":         "1",
			"KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS":             "1",
			"KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
			"KAFKA_TRANSACTION_STATE_LOG_MIN_ISR":            "1",
			"KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS":         "0",
			"KAFKA_AUTO_CREATE_TOPICS_ENABLE":                "false",
			// A killed broker may register again only when its old session has ended (9 s by default).
			"KAFKA_BROKER_SESSION_TIMEOUT_MS":    "2000",
			"KAFKA_BROKER_HEARTBEAT_INTERVAL_MS": "500",
		})},
		ready: func(ctx context.Context) error { return kafkaReady(ctx, addr) },
	})
	if err != nil {
		return nil, err
	}
	return &Kafka{Container: c}, nil
}

// kafkaReady asks for a group's offsets, which needs the broker, its controller and the group coordinator. The first
// question also makes the broker create the offsets topic, which would otherwise cost the first group reader 5 s.
func kafkaReady(ctx context.Context, addr string) error {
	return onKafka(addr, func(cl *kafka.Client) error {
		found, err := cl.FindCoordinator(ctx, &kafka.FindCoordinatorRequest{Addr: cl.Addr, Key: "ready", KeyType: kafka.CoordinatorKeyTypeConsumer})
		if err != nil {
			return err
		}
		if found.Error != nil {
			return found.Error
		}
		offsets, err := cl.OffsetFetch(ctx, &kafka.OffsetFetchRequest{Addr: cl.Addr, GroupID: "ready", Topics: map[string][]int{"none": {0}}})
		if err != nil {
			return err
		}
		return offsets.Error
	})
}

// onKafka lends a client with connections of its own to f and closes them.
func onKafka(addr string, f func(*kafka.Client) error) error {
	transport := &kafka.Transport{}
	defer transport.CloseIdleConnections()
	return f(&kafka.Client{Addr: kafka.TCP(addr), Transport: transport})
}

// Topic creates a topic for this test and returns its name.
func (k *Kafka) Topic(tb testing.TB, partitions int) string {
	tb.Helper()
	name := fmt.Sprintf("test-%d", k.topics.Add(1))
	call(tb, "create topic", func(ctx context.Context) error {
		return onKafka(k.Addr(), func(cl *kafka.Client) error {
			r, err := cl.CreateTopics(ctx, &kafka.CreateTopicsRequest{
				Addr: cl.Addr, Topics: []kafka.TopicConfig{{Topic: name, NumPartitions: partitions, ReplicationFactor: 1}},
			})
			if err == nil {
				err = r.Errors[name]
			}
			if err != nil {
				return err
			}
			return poll(ctx, func(ctx context.Context) error { // created is not yet served
				m, err := cl.Metadata(ctx, &kafka.MetadataRequest{Addr: cl.Addr, Topics: []string{name}})
				if err == nil {
					err = m.Topics[0].Error
				}
				return err
			})
		})
	})
	return name
}
