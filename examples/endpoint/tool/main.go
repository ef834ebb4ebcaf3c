// The program tool is an HTTP tool in Go: it adds two numbers.
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

func verify(h http.Header, body []byte) bool {
	stamp := h.Get("Skein-Timestamp")
	at, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || time.Since(time.Unix(at, 0)).Abs() > 5*time.Minute { // replayed, or a wrong clock
		return false
	}
	mac := hmac.New(sha256.New, []byte(os.Getenv("SHOP_SECRET")))
	mac.Write([]byte(stamp + "."))
	mac.Write(body)
	for _, one := range strings.Split(h.Get("Skein-Signature"), ",") {
		_, sum, _ := strings.Cut(one, "=")
		if got, err := hex.DecodeString(sum); err == nil && hmac.Equal(got, mac.Sum(nil)) {
			return true
		}
	}
	return false
}

func add(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 4<<20))
	if err != nil || !verify(r.Header, body) {
		http.Error(w, "the signature is not valid", http.StatusUnauthorized)
		return
	}
	var call struct{ Arguments struct{ A, B *float64 } }
	answer := map[string]any{"kind": "result", "status": "error", "error": "a and b are numbers"}
	if err := json.Unmarshal(body, &call); err == nil && call.Arguments.A != nil && call.Arguments.B != nil {
		answer = map[string]any{"kind": "result", "status": "success", "result": *call.Arguments.A + *call.Arguments.B}
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		log.Print(err)
	}
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Getenv("PORT"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("http://" + listener.Addr().String())
	server := &http.Server{Handler: http.HandlerFunc(add), ReadTimeout: time.Minute}
	log.Fatal(server.Serve(listener))
}
