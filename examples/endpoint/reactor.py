# An HTTP reactor in plain Python that streams: shouts, word by word.  SHOP_SECRET=... python3 reactor.py
import hashlib, hmac, json, os, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

def verify(headers, body):
    stamp = headers.get("Skein-Timestamp", "")
    if not stamp.isdigit() or abs(time.time() - int(stamp)) > 300:  # replayed, or a wrong clock
        return False
    sum = hmac.new(os.environ["SHOP_SECRET"].encode(), stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    return any(hmac.compare_digest(one.partition("=")[2], sum) for one in headers.get("Skein-Signature", "").split(","))

class Reactor(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if not verify(self.headers, body):
            return self.send_error(401, "the signature is not valid")
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()

        def send(message):  # fails when Skein has closed the connection: nobody waits any more
            self.wfile.write(b"data: " + json.dumps(message).encode() + b"\n\n")

        request = json.loads(body)
        said = [item for item in request["items"] if item.get("role") == "user"][-1]
        words = "".join(part.get("text", "") for part in said["content"]).upper().split()
        for word in words:  # the model's stream goes here; send {"kind": "heartbeat"} while it thinks
            send({"kind": "chunk", "type": "text-delta", "data": {"id": request["itemId"], "delta": word + " "}})
        send({"kind": "result", "assistantEvent": {"content": [{"type": "output_text", "text": " ".join(words) + "!"}]}})

    def log_message(self, *_):
        pass

server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "8081"))), Reactor)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
