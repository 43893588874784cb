package core

import (
	"net/http"
	"time"
)

// authenticate returns who signed r; r's body has been read. The service is
// the one that r is for. Errors have the codes that the service's protocol uses.
func (s *Server) authenticate(r *http.Request, body []byte, service string) (*signature, Principal, error) {
	none := Principal{}
	sig, err := parseSignature(r)
	if err != nil {
		return nil, none, authError(service, "IncompleteSignature", err.Error())
	}
	if sig == nil {
		return nil, none, authError(service, "MissingAuthenticationToken", "Request is missing Authentication Token")
	}
	if sig.service != service {
		return sig, none, authError(service, "SignatureDoesNotMatch", "Credential should be scoped to correct service: '"+service+"'.")
	}
	who, ok := s.Principals.Find(sig.accessKey)
	if !ok || who.SessionToken != sig.token {
		return sig, none, authError(service, "InvalidClientTokenId", "The security token included in the request is invalid.")
	}
	now := s.wall.Now()
	if !who.Expires.IsZero() && now.After(who.Expires) {
		return sig, none, authError(service, "ExpiredToken", "The security token included in the request is expired")
	}
	if err := sig.fresh(now); err != "" {
		return sig, none, authError(service, "SignatureDoesNotMatch", err)
	}
	if !sig.verify(r, body, who.SecretAccessKey) {
		return sig, none, authError(service, "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. Consult the service documentation for details.")
	}
	return sig, who, nil
}

// fresh says why the signature is too old or too new, or nothing.
func (s *signature) fresh(now time.Time) string {
	lifetime := maxClockSkew
	if s.presigned && s.service != "sts" { // STS lets a presigned call live as long as a signed one
		lifetime = s.expires
	}
	at, edge := s.at.Format(sigTime), now.UTC().Format(sigTime)
	switch {
	case s.at.After(now.Add(maxClockSkew)):
		return "Signature not yet current: " + at + " is still later than " + edge
	case now.After(s.at.Add(lifetime)):
		return "Signature expired: " + at + " is now earlier than " + edge
	}
	return ""
}

// authError gives an authentication error the name it has in the service's
// protocol.
func authError(service, code, message string) *Error {
	e := &Error{Code: code, Message: message, Status: http.StatusForbidden}
	switch serviceProtocol(service) {
	case JSON11, REST:
		e.Code = map[string]string{
			"IncompleteSignature":        "IncompleteSignatureException",
			"MissingAuthenticationToken": "MissingAuthenticationTokenException",
			"InvalidClientTokenId":       "UnrecognizedClientException",
			"ExpiredToken":               "ExpiredTokenException",
			"SignatureDoesNotMatch":      "InvalidSignatureException",
		}[code]
		if serviceProtocol(service) == JSON11 {
			e.Status = http.StatusBadRequest
		}
	case JSON10:
		e.QueryCode = code
	}
	return e
}
