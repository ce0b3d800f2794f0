package containers_test

import (
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/stretchr/testify/require"

	containers "likectl/testcontainers"
)

func TestKafka_KillKeepsMessages(t *testing.T) {
	k := containers.SharedKafka(t)
	topic := k.Topic(t, 1)
	transport := &kafka.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	w := &kafka.Writer{
		Addr: kafka.TCP(k.Addr()), Topic: topic, Transport: transport,
		RequiredAcks: kafka.RequireAll, BatchTimeout: time.Millisecond,
	}
	t.Cleanup(func() { _ = w.Close() })
	require.NoError(t, w.WriteMessages(t.Context(), kafka.Message{Value: []byte("one")}))

	k.Kill(t)
	require.Error(t, w.WriteMessages(within(t, 500*time.Millisecond), kafka.Message{Value: []byte("lost")}))
	k.Start(t)
	require.NoError(t, w.WriteMessages(within(t, 30*time.Second), kafka.Message{Value: []byte("two")}))

	r := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{k.Addr()}, Topic: topic, MaxWait: 100 * time.Millisecond})
	t.Cleanup(func() { _ = r.Close() })
	var got []string
	for len(got) == 0 || got[len(got)-1] != "two" {
		m, err := r.ReadMessage(within(t, 30*time.Second))
		require.NoError(t, err)
		got = append(got, string(m.Value))
	}
	require.Equal(t, "one", got[0], "acknowledged before the kill")
}
