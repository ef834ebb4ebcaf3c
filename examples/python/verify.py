import base64, hashlib, json, os, re, shutil, subprocess, sys, tempfile

def fail(why): sys.exit(f"line {n}: {why}")

def signed(key, message, signature):  # True, False, or None where there is no openssl
    if not shutil.which("openssl"): return None
    raw = base64.b32decode(key + "=" * (-len(key) % 8))  # a prefix byte, 32 bytes of key, a checksum
    with tempfile.TemporaryDirectory() as d:
        at = lambda name: os.path.join(d, name)
        for name, data in ("k", bytes.fromhex("302a300506032b6570032100") + raw[1:33]), ("m", message), ("s", signature):
            with open(at(name), "wb") as f: f.write(data)
        return subprocess.run(["openssl", "pkeyutl", "-verify", "-pubin", "-keyform", "DER", "-inkey", at("k"), "-rawin",
                               "-in", at("m"), "-sigfile", at("s")], capture_output=True).returncode == 0

digest, count, size = hashlib.sha256(), dict.fromkeys(("lines", "threads", "others", "commits"), 0), 0
opened, chain, version, last, chains = None, "", 0, None, False
for n, raw in enumerate(open(sys.argv[1], "rb"), 1):
    line = json.loads(raw)
    if last and "manifest" in last: fail("something follows the manifest")
    last = line
    if "manifest" in line: manifest = raw; continue
    digest.update(raw); count["lines"] += 1; size += len(raw)
    if n == 1 and (line.get("file"), line.get("format")) != ("skein-export", 1): fail("not an export of format 1")
    chains = chains or n == 1 and line.get("chains", False)
    if "seq" in line and "subject" in line:
        if opened is None: opened, chain, version = {"end": line["subject"], "commits": 0}, "", 0
        body = base64.b64decode(line["base64"]) if "base64" in line else line["body"].encode()
        events = json.loads(body)
        tombstone = any(e["type"] == "lifecycle.deleted" and e["data"].get("purge") for e in events)
        right = hashlib.sha256(chain.encode() + body).hexdigest() == line["chain"] and version + len(events) == int(line["version"])
        if line["subject"] != opened["end"] or not right and not tombstone: fail(f"the chain of {line['subject']} is broken")
        chain, version = line["chain"], int(line["version"])
        opened.update(commits=opened["commits"] + 1, version=line["version"], seq=line["seq"], chain=chain)
    elif "end" in line:
        if line != opened and not chains: fail("not the end of what stands before it")
        count["commits"] += line["commits"]
        count["threads" if line["end"].split(".")[-1].startswith(("T-", "thrd_")) else "others"] += 1
        opened = None
    elif "content" in line and "absent" not in line:
        if line["offset"] == 0: content, have = hashlib.sha256(), 0
        piece = base64.b64decode(line.get("piece", "")); content.update(piece); have += len(piece)
        if line["offset"] + len(piece) != have or have == line["size"] and content.hexdigest() != line["content"]: fail(f"the content {line['content']} was altered")
if not last or "manifest" not in last: fail("no manifest: the file was cut off")
m = last["manifest"]
if opened or m["digest"] != digest.hexdigest() or m["bytes"] != size or any(m[k] != count[k] for k in count): fail("the file is not what its manifest says")
if "key" in last and signed(last["key"], re.match(rb'{"manifest":({[^}]*})', manifest)[1], base64.b64decode(last["signature"])) is False: fail("the signature is wrong")
print(f"right: {count['threads']} threads, {count['commits']} commits, signed by {last.get('key', 'nobody')}")
