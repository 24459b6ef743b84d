package grpclock

import (
	"context"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// observed is what a handler sets of header and trailer. The stream of grpc-go has it. A wrapper around it would keep
// grpc.SetSendCompressor from its handlers, so there is one only for streams of other transports.
type observed struct {
	ctx             context.Context
	own             ownStream // nil for another transport
	header, trailer metadata.MD
	wrapped         *watchedStream
}

// ownStream is what the stream of grpc-go has beside a [grpc.ServerTransportStream].
type ownStream interface {
	Header() (metadata.MD, error)
	Trailer() metadata.MD
}

func observe(ctx context.Context) *observed {
	o := &observed{ctx: ctx}
	stream := grpc.ServerTransportStreamFromContext(ctx)
	if own, ok := stream.(ownStream); ok {
		o.own, o.trailer = own, own.Trailer()
		o.header, _ = own.Header()
	} else if stream != nil {
		o.wrapped = &watchedStream{ServerTransportStream: stream}
	}
	return o
}

// context is the handler's.
func (o *observed) context() context.Context {
	if o.wrapped == nil {
		return o.ctx
	}
	return grpc.NewContextWithServerTransportStream(o.ctx, o.wrapped)
}

// metadata returns what was set since observe was called.
func (o *observed) metadata() (header, trailer metadata.MD) {
	switch {
	case o.wrapped != nil:
		return o.wrapped.sent()
	case o.own == nil:
		return nil, nil
	}
	header, _ = o.own.Header()
	return added(header, o.header), added(o.own.Trailer(), o.trailer)
}

// added returns what was appended to metadata.
func added(all, before metadata.MD) metadata.MD {
	for name, values := range before {
		if all[name] = all[name][min(len(values), len(all[name])):]; len(all[name]) == 0 {
			delete(all, name)
		}
	}
	return all
}

// watchedStream records what is set on a stream of another transport.
type watchedStream struct {
	grpc.ServerTransportStream
	mu              sync.Mutex
	header, trailer metadata.MD
}

// note adds metadata unless it was refused.
func (s *watchedStream) note(to *metadata.MD, md metadata.MD, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		*to = metadata.Join(*to, md)
	}
	return err
}

func (s *watchedStream) SetHeader(md metadata.MD) error {
	return s.note(&s.header, md, s.ServerTransportStream.SetHeader(md))
}

func (s *watchedStream) SendHeader(md metadata.MD) error {
	return s.note(&s.header, md, s.ServerTransportStream.SendHeader(md))
}

func (s *watchedStream) SetTrailer(md metadata.MD) error {
	return s.note(&s.trailer, md, s.ServerTransportStream.SetTrailer(md))
}

func (s *watchedStream) sent() (header, trailer metadata.MD) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.header.Copy(), s.trailer.Copy()
}
