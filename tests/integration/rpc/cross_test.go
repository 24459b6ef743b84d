package rpc_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	_ "google.golang.org/grpc/encoding/gzip" // for the server
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/core"
	connectlock "github.com/holdfast-go/holdfast/middleware/connect"
	grpclock "github.com/holdfast-go/holdfast/middleware/grpc"
)

// outcome is what a client of either library gets.
type outcome struct {
	payload, extra string // the message, and a header of the handler
	code           codes.Code
	reason         string
	replayed       bool
	detail         string // a detail of the handler's error
}

type caller func(t *testing.T, key, payload string) outcome

// byGRPC calls with grpc-go.
func byGRPC(addr string) func(*testing.T) caller {
	return func(t *testing.T) caller {
		client := testpb.NewTestServiceClient(connectTo(t, addr))
		return func(t *testing.T, key, payload string) (o outcome) {
			t.Helper()
			var header, trailer metadata.MD
			resp, err := client.UnaryCall(metadata.AppendToOutgoingContext(t.Context(), "idempotency-key", key), request(payload),
				grpc.Header(&header), grpc.Trailer(&trailer))
			all := metadata.Join(header, trailer) // connect sends the metadata of an error as trailers
			o.payload, o.code = string(resp.GetPayload().GetBody()), status.Code(err)
			o.replayed = len(all.Get("idempotency-replayed")) == 1
			if extra := all.Get("x-extra"); len(extra) > 0 {
				o.extra = extra[0]
			}
			for _, d := range status.Convert(err).Details() {
				o.note(d)
			}
			return o
		}
	}
}

// byConnect calls with connect, in its own protocol or gRPC's.
func byConnect(addr string, opts ...connect.ClientOption) func(*testing.T) caller {
	return func(t *testing.T) caller {
		client := connect.NewClient[testpb.SimpleRequest, testpb.SimpleResponse](h2c(t), "http://"+addr+unaryCall, opts...)
		return func(t *testing.T, key, payload string) (o outcome) {
			t.Helper()
			req := connect.NewRequest(request(payload))
			req.Header().Set("Idempotency-Key", key)
			resp, err := client.CallUnary(t.Context(), req)
			header := http.Header{}
			var coded *connect.Error
			switch {
			case err == nil:
				header, o.payload = resp.Header(), string(resp.Msg.GetPayload().GetBody())
			case errors.As(err, &coded):
				header, o.code = coded.Meta(), codes.Code(coded.Code())
				for _, d := range coded.Details() {
					if v, err := d.Value(); err == nil {
						o.note(v)
					}
				}
			default:
				t.Error(err)
			}
			o.extra, o.replayed = header.Get("X-Extra"), header.Get("Idempotency-Replayed") == "true"
			return o
		}
	}
}

func (o *outcome) note(detail any) {
	switch d := detail.(type) {
	case *errdetails.ErrorInfo:
		o.reason = d.GetReason()
	case *errdetails.ResourceInfo:
		o.detail = d.GetResourceName()
	}
}

// servers returns a server of each library on one Redis. Their handlers answer alike, and count their runs.
func servers(t *testing.T, locks *core.Client, runs *int) (grpcAddr, connectAddr string) {
	t.Helper()
	server := grpc.NewServer(grpc.UnaryInterceptor(grpclock.For(unaryCall, grpclock.Idempotent(locks, grpclock.Unscoped(), grpclock.WithAskTimeout(patience)))))
	testpb.RegisterTestServiceServer(server, &service{unary: func(ctx context.Context, r *testpb.SimpleRequest) (*testpb.SimpleResponse, error) {
		*runs++
		_ = grpc.SetHeader(ctx, metadata.Pairs("x-extra", "of the handler"))
		if string(r.GetPayload().GetBody()) == "fail" {
			s, err := status.New(codes.NotFound, "no such order").WithDetails(&errdetails.ResourceInfo{ResourceName: "order 7"})
			if err != nil {
				t.Error(err)
			}
			return nil, s.Err()
		}
		return response("done"), nil
	}})
	mux := http.NewServeMux()
	mux.Handle(unaryCall, connect.NewUnaryHandler(unaryCall, func(
		_ context.Context, r *connect.Request[testpb.SimpleRequest],
	) (*connect.Response[testpb.SimpleResponse], error) {
		*runs++
		if string(r.Msg.GetPayload().GetBody()) == "fail" {
			err := connect.NewError(connect.CodeNotFound, errors.New("no such order"))
			detail, failure := connect.NewErrorDetail(&errdetails.ResourceInfo{ResourceName: "order 7"})
			if failure != nil {
				t.Error(failure)
			}
			err.AddDetail(detail)
			err.Meta().Set("X-Extra", "of the handler")
			return nil, err
		}
		resp := connect.NewResponse(response("done"))
		resp.Header().Set("X-Extra", "of the handler")
		return resp, nil
	}, connect.WithInterceptors(connectlock.For(unaryCall, connectlock.Idempotent(locks, connectlock.Unscoped(), connectlock.WithAskTimeout(patience))))))
	return listen(t, server.Serve, server.Stop), listenHTTP(t, mux)
}

// TestCrossLibraries: each client of each server gets the first response again, also from the server of the other library.
func TestCrossLibraries(t *testing.T) {
	t.Parallel()
	runs := 0
	grpcAddr, connectAddr := servers(t, newLocks(t), &runs)
	clients := map[string]caller{
		"grpc-go at grpc-go":                   byGRPC(grpcAddr)(t),
		"grpc-go at connect":                   byGRPC(connectAddr)(t),
		"connect at connect":                   byConnect(connectAddr)(t),
		"connect with gRPC at connect":         byConnect(connectAddr, connect.WithGRPC())(t),
		"connect with gRPC-Web at connect":     byConnect(connectAddr, connect.WithGRPCWeb())(t),
		"connect with JSON at connect":         byConnect(connectAddr, connect.WithProtoJSON())(t),
		"connect with gRPC at grpc-go":         byConnect(grpcAddr, connect.WithGRPC())(t),
		"connect with gRPC, gzip, at grpc-go":  byConnect(grpcAddr, connect.WithGRPC(), connect.WithSendGzip())(t),
		"connect, gzip, at connect, over HTTP": byConnect(connectAddr, connect.WithSendGzip())(t),
	}
	for name, first := range clients {
		before := runs
		want := outcome{payload: "done", extra: "of the handler"}
		if got := first(t, name, "x"); got != want {
			t.Errorf("%s: first %+v, want %+v", name, got, want)
		}
		failed := outcome{extra: "of the handler", code: codes.NotFound, detail: "order 7"}
		if got := first(t, name+" fails", "fail"); got != failed {
			t.Errorf("%s: first %+v, want %+v", name, got, failed)
		}
		want.replayed, failed.replayed = true, true
		for other, again := range clients {
			if got := again(t, name, "x"); got != want {
				t.Errorf("%s, then %s: %+v, want %+v", name, other, got, want)
			}
			if got := again(t, name+" fails", "fail"); got != failed {
				t.Errorf("%s, then %s: %+v, want %+v", name, other, got, failed)
			}
			if got := again(t, name, "y"); got.reason != "IDEMPOTENCY_KEY_REUSED" || got.code != codes.InvalidArgument {
				t.Errorf("%s, then %s: %+v", name, other, got)
			}
		}
		if runs != before+2 {
			t.Errorf("%s: ran %d times", name, runs-before)
		}
	}
}
