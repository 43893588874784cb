package core

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
)

// Page cuts a page from sorted names. The limit is text as it came (empty
// means most), most its upper bound; the token is one that Page returned.
func Page(names []string, limit string, most int, token string) (page []string, next string, err error) {
	n := most
	if limit != "" {
		if n, err = strconv.Atoi(limit); err != nil || n < 1 || n > most {
			return nil, "", fmt.Errorf("limit %q: want a number from 1 to %d", limit, most)
		}
	}
	start := 0
	if token != "" {
		last, err := base64.RawURLEncoding.DecodeString(token)
		if err != nil {
			return nil, "", fmt.Errorf("token %q is not one that was returned", token)
		}
		start, _ = slices.BinarySearch(names, string(last)+"\x00")
	}
	names = names[start:]
	if len(names) <= n {
		return names, "", nil
	}
	return names[:n], base64.RawURLEncoding.EncodeToString([]byte(names[n-1])), nil
}
