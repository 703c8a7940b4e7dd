// Receives events and verifies them, with the standard library alone. See ../README.md for its variables.
package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// The largest body of an event, with some room for who has made the change.
	maxBytes = 5 << 20
	// A token is valid for 5 minutes.
	maxAge = 5 * time.Minute
	// How often the keys are read again for tokens that name an unknown one.
	keyPause = 30 * time.Second
)

// rejected says why a request is not accepted, with the status to answer.
type rejected struct {
	status  int
	message string
}

func (r rejected) Error() string { return r.message }

// Event is what a receiver handles.
type Event struct {
	ID      string          `json:"id"`
	Type    string          `json:"type"`
	Subject string          `json:"subject"`
	Data    json.RawMessage `json:"-"`
}

type verifier struct {
	issuer, group string
	// With it, tokens for other subscriptions of the group are refused.
	subscription string
	// Services before version 1.8 prove the data alone, and their tokens are accepted unless this is set.
	requireAttributes bool
	// How far the clocks of the service and of this machine may differ in either direction.
	tolerance time.Duration
	client    http.Client

	mu       sync.Mutex
	keys     map[string]crypto.PublicKey
	readAt   time.Time
	accepted map[string]time.Time
}

// verify returns the event of a request, or why it is none.
func (v *verifier) verify(header http.Header, body []byte) (*Event, error) {
	scheme, token, _ := strings.Cut(header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "bearer") || token == "" {
		return nil, rejected{http.StatusUnauthorized, "authorization must be a bearer token"}
	}
	attributes, err := readAttributes(header)
	if err != nil {
		return nil, err
	}
	event := &Event{ID: attributes["id"], Type: attributes["type"], Subject: attributes["subject"]}
	if attributes["specversion"] != "1.0" || event.ID == "" || event.Type == "" || attributes["source"] == "" {
		return nil, rejected{http.StatusBadRequest, "this is no CloudEvent of version 1.0 in binary mode"}
	}
	if err := v.verifyToken(token, body, attributes); err != nil {
		return nil, err
	}
	var data map[string]json.RawMessage
	if json.Unmarshal(body, &data) != nil {
		return nil, rejected{http.StatusBadRequest, "the data is no JSON object"}
	}
	// The signature is left out: whoever has one can write others that are valid.
	if !v.acceptOnce(token[:strings.LastIndexByte(token, '.')]) {
		return nil, rejected{http.StatusForbidden, "the token was used before"}
	}
	event.Data = body
	return event, nil
}

// readAttributes returns the attributes of a CloudEvent in binary mode. Values of header fields are percent-encoded.
func readAttributes(header http.Header) (map[string]string, error) {
	attributes := map[string]string{}
	for field, values := range header {
		name, isAttribute := strings.CutPrefix(strings.ToLower(field), "ce-")
		if !isAttribute {
			continue
		}
		if len(values) != 1 {
			return nil, rejected{http.StatusBadRequest, field + " has more than one value"}
		}
		if value := values[0]; value != "" {
			attributes[name] = value
			if decoded, err := url.PathUnescape(value); err == nil {
				attributes[name] = decoded
			}
		}
	}
	return attributes, nil
}

// digestAttributes returns the digest that the token proves: of one line for each attribute, with the length of its value.
func digestAttributes(attributes map[string]string) string {
	names := make([]string, 0, len(attributes))
	for name := range attributes {
		names = append(names, name)
	}
	sort.Strings(names)
	hash := sha256.New()
	for _, name := range names {
		fmt.Fprintf(hash, "%s=%d:%s\n", name, len(attributes[name]), attributes[name])
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil))
}

type audience []string

func (a *audience) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*a = audience{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(a))
}

func (v *verifier) verifyToken(token string, body []byte, attributes map[string]string) error {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return rejected{http.StatusForbidden, "the token is no JWT"}
	}
	var head struct{ Alg, Kid string }
	var claims struct {
		Iss, Sub string
		Aud      audience
		Exp, Iat float64
		// Pointers are nil for claims that a token does not have.
		Webhook struct {
			Digest                   string
			Attributes, Subscription *string
		}
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || decode(parts[0], &head) != nil || decode(parts[1], &claims) != nil {
		return rejected{http.StatusForbidden, "the token is no JWT"}
	}
	key, err := v.findKey(head.Kid)
	if err != nil {
		return rejected{http.StatusServiceUnavailable, "the keys of the issuer cannot be read"}
	}
	if !isSigned(key, head.Alg, parts[0]+"."+parts[1], signature) {
		return rejected{http.StatusForbidden, "the token is not one of the issuer"}
	}
	now := time.Now()
	digest := sha256.Sum256(body)
	webhook := claims.Webhook
	switch {
	case claims.Iss != v.issuer:
		return rejected{http.StatusForbidden, "the token has another issuer"}
	case !contains(claims.Aud, "customer"):
		return rejected{http.StatusForbidden, "the token has another audience"}
	case claims.Sub != "webhook:"+v.group:
		return rejected{http.StatusForbidden, "the token is for another group"}
	case now.Add(-v.tolerance).After(toTime(claims.Exp)), now.Add(-maxAge - v.tolerance).After(toTime(claims.Iat)),
		now.Add(v.tolerance).Before(toTime(claims.Iat)):
		return rejected{http.StatusForbidden, "the token has expired"}
	case webhook.Digest != "sha256:"+hex.EncodeToString(digest[:]):
		return rejected{http.StatusForbidden, "the data is not what was signed"}
	case v.requireAttributes && (webhook.Attributes == nil || webhook.Subscription == nil):
		return rejected{http.StatusForbidden, "the token does not prove the attributes"}
	case webhook.Attributes != nil && *webhook.Attributes != digestAttributes(attributes):
		return rejected{http.StatusForbidden, "the attributes are not what was signed"}
	case v.subscription != "" && webhook.Subscription != nil && *webhook.Subscription != v.subscription:
		return rejected{http.StatusForbidden, "the token is for another subscription of the group"}
	}
	return nil
}

func decode(part string, value any) error {
	text, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, value)
}

func toTime(seconds float64) time.Time { return time.Unix(int64(seconds), 0) }

func contains(all []string, one string) bool {
	for _, value := range all {
		if value == one {
			return true
		}
	}
	return false
}

// isSigned accepts two algorithms only: never "none", nor one with a shared secret.
func isSigned(key crypto.PublicKey, alg, text string, signature []byte) bool {
	digest := sha256.Sum256([]byte(text))
	switch key := key.(type) {
	case *rsa.PublicKey:
		return alg == "RS256" && rsa.VerifyPKCS1v15(key, crypto.SHA256, digest[:], signature) == nil
	case *ecdsa.PublicKey:
		if alg != "ES256" || len(signature) != 64 {
			return false
		}
		r, s := new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])
		return ecdsa.Verify(key, digest[:], r, s)
	}
	return false
}

// findKey returns a key of the issuer, and nil for one that it does not have.
func (v *verifier) findKey(kid string) (crypto.PublicKey, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if key, found := v.keys[kid]; found {
		return key, nil
	}
	if v.keys != nil && time.Since(v.readAt) < keyPause {
		return nil, nil
	}
	keys, err := v.readKeys()
	if err != nil {
		return nil, err
	}
	v.keys, v.readAt = keys, time.Now()
	return keys[kid], nil
}

func (v *verifier) readKeys() (map[string]crypto.PublicKey, error) {
	var document struct {
		Issuer  string `json:"issuer"`
		JwksURI string `json:"jwks_uri"`
	}
	if err := v.read(strings.TrimSuffix(v.issuer, "/")+"/.well-known/openid-configuration", &document); err != nil {
		return nil, err
	}
	if document.Issuer != v.issuer {
		return nil, errors.New("the document is of another issuer")
	}
	var set struct {
		Keys []struct{ Kid, Kty, Crv, N, E, X, Y string }
	}
	if err := v.read(document.JwksURI, &set); err != nil {
		return nil, err
	}
	keys := map[string]crypto.PublicKey{}
	for _, key := range set.Keys {
		switch {
		case key.Kty == "RSA":
			keys[key.Kid] = &rsa.PublicKey{N: number(key.N), E: int(number(key.E).Int64())}
		case key.Kty == "EC" && key.Crv == "P-256":
			keys[key.Kid] = &ecdsa.PublicKey{Curve: elliptic.P256(), X: number(key.X), Y: number(key.Y)}
		}
	}
	return keys, nil
}

func number(text string) *big.Int {
	bytes, _ := base64.RawURLEncoding.DecodeString(text)
	return new(big.Int).SetBytes(bytes)
}

func (v *verifier) read(address string, value any) error {
	response, err := v.client.Get(address)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", address, response.Status)
	}
	return json.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(value)
}

func (v *verifier) acceptOnce(token string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	for old, until := range v.accepted {
		if until.Before(now) {
			delete(v.accepted, old)
		}
	}
	if _, found := v.accepted[token]; found {
		return false
	}
	v.accepted[token] = now.Add(maxAge + 2*v.tolerance)
	return true
}

func (v *verifier) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(response, request.Body, maxBytes))
	if err != nil {
		http.Error(response, "the body is too large", http.StatusBadRequest)
		return
	}
	event, err := v.verify(request.Header, body)
	var why rejected
	if errors.As(err, &why) {
		http.Error(response, why.message, why.status)
		return
	}
	// An event may arrive more than once, with the same id: handle it so that this does no harm.
	line, _ := json.Marshal(event)
	fmt.Println(string(line))
	response.WriteHeader(http.StatusOK)
}

func main() {
	port := os.Getenv("PORT")
	if port == "" {
		port = "8085"
	}
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Fprintf(os.Stderr, "{\"port\":%d}\n", listener.Addr().(*net.TCPAddr).Port)
	receiver := &verifier{
		issuer:            os.Getenv("ISSUER"),
		group:             os.Getenv("GROUP"),
		subscription:      os.Getenv("SUBSCRIPTION"),
		requireAttributes: os.Getenv("REQUIRE_ATTRIBUTES") == "true",
		tolerance:         5 * time.Minute,
		client:            http.Client{Timeout: 10 * time.Second},
		accepted:          map[string]time.Time{},
	}
	if text := os.Getenv("TOLERANCE_SECONDS"); text != "" {
		seconds, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			log.Fatal("TOLERANCE_SECONDS must be a number of seconds")
		}
		receiver.tolerance = time.Duration(seconds) * time.Second
	}
	server := http.Server{Handler: receiver, ReadTimeout: 30 * time.Second}
	log.Fatal(server.Serve(listener))
}
