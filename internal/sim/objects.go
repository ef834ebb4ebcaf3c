package sim

import (
	"context"
	"io"

	"github.com/nats-io/nats.go/jetstream"
)

// objects is the store of snapshots.
type objects struct {
	jetstream.ObjectStore
	jet *jet
}

func (o *objects) Put(ctx context.Context, meta jetstream.ObjectMeta, from io.Reader) (*jetstream.ObjectInfo, error) {
	data, err := io.ReadAll(from)
	if err != nil {
		return nil, err
	}
	_, err = o.jet.do(ctx, "put "+meta.Name, func(s *Server) any {
		s.objects[meta.Name] = data
		return true
	})
	return nil, err
}

func (o *objects) GetBytes(ctx context.Context, name string, _ ...jetstream.GetObjectOpt) ([]byte, error) {
	a, err := o.jet.do(ctx, "object "+name, func(s *Server) any {
		if data, ok := s.objects[name]; ok {
			return data
		}
		return jetstream.ErrObjectNotFound
	})
	if err != nil {
		return nil, err
	}
	return a.([]byte), nil
}

func (o *objects) Delete(ctx context.Context, name string) error {
	_, err := o.jet.do(ctx, "drop "+name, func(s *Server) any {
		if _, ok := s.objects[name]; !ok {
			return jetstream.ErrObjectNotFound
		}
		delete(s.objects, name)
		return true
	})
	return err
}
