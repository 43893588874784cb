package targetgroup

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"sync"

	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

const (
	// maxLean bounds the answers that are read here: ELB's default quota of 1,000
	// targets in a group makes 0.4 MB. Larger ones are the SDK's.
	maxLean = 4 << 20
	// maxKept is the largest buffer that is kept for the next answer.
	maxKept = 1 << 20
	// sdkDecoder is the name of the SDK's own step.
	sdkDecoder = "OperationDeserializer"
)

// leanly has a call of DescribeTargetHealth read its answer by scanHealth: most
// of what resync spends is the reading of targets, and the SDK's own reading of
// them costs ten times as much (ADR 0018).
func leanly(o *elb.Options) {
	o.APIOptions = append(slices.Clip(o.APIOptions), func(stack *middleware.Stack) error {
		lean := &leanDecoder{}
		if sdk, err := stack.Deserialize.Swap(sdkDecoder, lean); err == nil { // else it has another name now, and goes on
			lean.sdk = sdk
		}
		return nil
	})
}

// leanDecoder stands in the place of the SDK's decoder, which has every answer
// that is not plainly a list of targets: errors, what is cut off, what is
// written in any other way.
type leanDecoder struct {
	sdk middleware.DeserializeMiddleware
}

// ID is the SDK's, by which other steps find their place.
func (d *leanDecoder) ID() string { return sdkDecoder }

func (d *leanDecoder) HandleDeserialize(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
	out, md, err := next.HandleDeserialize(ctx, in)
	sdk := func() (middleware.DeserializeOutput, middleware.Metadata, error) {
		return d.sdk.HandleDeserialize(ctx, in, answered{out, md, err})
	}
	resp, ok := out.RawResponse.(*smithyhttp.Response)
	if err != nil || !ok || resp.StatusCode != http.StatusOK || resp.Body == nil {
		return sdk()
	}
	buf, _ := buffers.Get().(*bytes.Buffer)
	defer release(buf, resp)
	body := resp.Body
	_, readErr := buf.ReadFrom(io.LimitReader(body, maxLean))
	switch {
	case readErr != nil || buf.Len() == maxLean:
	case buf.Len() == 0: // which the SDK takes for a group without targets
		readErr = io.ErrUnexpectedEOF
	default:
		if all, ok := scanHealth(buf.Bytes()); ok {
			out.Result = &elb.DescribeTargetHealthOutput{TargetHealthDescriptions: all}
			_ = body.Close() // it was read to its end
			return out, md, nil
		}
	}
	resp.Body = &reread{io.MultiReader(bytes.NewReader(buf.Bytes()), failed{readErr}, body), body}
	return sdk()
}

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// release gives a buffer back, of which nothing is read any more.
func release(buf *bytes.Buffer, resp *smithyhttp.Response) {
	resp.Body = http.NoBody
	if buf.Cap() <= maxKept {
		buf.Reset()
		buffers.Put(buf)
	}
}

// answered is a handler that has its answer already.
type answered struct {
	out middleware.DeserializeOutput
	md  middleware.Metadata
	err error
}

func (a answered) HandleDeserialize(context.Context, middleware.DeserializeInput) (middleware.DeserializeOutput, middleware.Metadata, error) {
	return a.out, a.md, a.err
}

// reread is a body of which a part, or all, was read before.
type reread struct {
	io.Reader
	io.Closer
}

// failed reads as a body whose reading failed, if it did.
type failed struct{ err error }

func (f failed) Read([]byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return 0, io.EOF
}
