import base64, hashlib, json, os, re, shutil, subprocess, sys, tempfile

def fail(why): sys.exit(f"line {n}: {why}")

def once(pairs):  # an object without repeated names
    if len(dict(pairs)) != len(pairs): fail("a name stands twice in an object")
    return dict(pairs)

def exact(text):  # base64 in its one form
    raw = base64.b64decode(text)
    if base64.b64encode(raw).decode() != text: fail("not base64")
    return raw

def crc16(raw):
    crc = 0
    for byte in raw:
        crc ^= byte << 8
        for _ in range(8): crc = (crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xffff
    return crc

def signed(key, message, signature):  # True, False, or None where there is no openssl
    raw = base64.b32decode(key + "=" * (-len(key) % 8))  # a prefix byte, 32 bytes of key, a checksum
    if len(raw) != 35 or crc16(raw[:33]) != int.from_bytes(raw[33:], "little"): fail("the key is no NKey")
    if not shutil.which("openssl"): return None
    with tempfile.TemporaryDirectory() as d:
        at = lambda name: os.path.join(d, name)
        for name, data in ("k", bytes.fromhex("302a300506032b6570032100") + raw[1:33]), ("m", message), ("s", signature):
            with open(at(name), "wb") as f: f.write(data)
        return subprocess.run(["openssl", "pkeyutl", "-verify", "-pubin", "-keyform", "DER", "-inkey", at("k"), "-rawin",
                               "-in", at("m"), "-sigfile", at("s")], capture_output=True).returncode == 0

digest, count, size = hashlib.sha256(), dict.fromkeys(("lines", "threads", "others", "commits"), 0), 0
opened, chain, version, last, chains, purged, ended, highest = None, "", 0, None, False, False, set(), 0
piece = None  # of the content whose pieces are read: its line, its hash, how many bytes there were
for n, raw in enumerate(open(sys.argv[1], "rb"), 1):
    line = json.loads(raw, object_pairs_hook=once)
    if last and "manifest" in last: fail("something follows the manifest")
    last = line
    if "manifest" in line: manifest = raw; continue
    digest.update(raw); count["lines"] += 1; size += len(raw)
    if piece and not ("content" in line and line["content"] == piece[0]["content"] and line["tenant"] == piece[0]["tenant"]): fail("a content is not whole")
    if n == 1:
        if (line.get("file"), line.get("format")) != ("skein-export", 1): fail("not an export of format 1")
        chains = line.get("chains", False)
    elif "seq" in line and "subject" in line and not chains:
        if opened is None: opened, chain, version, purged = {"end": line["subject"], "commits": 0}, "", 0, False
        if line["subject"] != opened["end"] or line["subject"] in ended: fail(f"a commit of {line['subject']} stands elsewhere")
        if purged or opened["commits"] and line["seq"] <= opened["seq"]: fail("what follows is not later")
        body = exact(line["base64"]) if "base64" in line else line["body"].encode()
        events = json.loads(body)
        right = hashlib.sha256(chain.encode() + body).hexdigest() == line["chain"] and version + len(events) == int(line["version"])
        purged = not right and opened["commits"] == 0 and any(e["type"] == "lifecycle.deleted" and e["data"].get("purge") is True for e in events)
        if not right and not purged: fail(f"the chain of {line['subject']} is broken")
        chain, version = line["chain"], int(line["version"])
        opened.update(commits=opened["commits"] + 1, version=line["version"], seq=line["seq"], chain=chain)
    elif "end" in line:
        if line != opened and not chains or line["end"] in ended: fail("not the end of what stands before it")
        count["commits"] += line["commits"]
        count["threads" if line["end"].split(".")[-1].startswith(("T-", "thrd_")) else "others"] += 1
        ended.add(line["end"]); opened = None; highest = max(highest, line["seq"])
    elif "content" in line and "absent" in line: piece = None
    elif "content" in line:
        if line["offset"] == 0 and not piece: piece = line, hashlib.sha256(), 0
        if not piece or line["offset"] != piece[2] or line["size"] != piece[0]["size"]: fail("a piece of a content is missing")
        data = exact(line.get("piece", "")); piece[1].update(data); piece = piece[0], piece[1], piece[2] + len(data)
        if piece[2] >= line["size"]:
            if piece[2] > line["size"] or piece[1].hexdigest() != line["content"]: fail(f"the content {line['content']} was altered")
            piece = None
    else: fail("a line of no known form")
if not last or "manifest" not in last: fail("no manifest: the file was cut off")
m = last["manifest"]
if opened or piece or m["digest"] != digest.hexdigest() or m["bytes"] != size or m["lastSeq"] != highest or any(m[k] != count[k] for k in count): fail("the file is not what its manifest says")
by = last.get("key", "nobody")
if ("key" in last) != ("signature" in last): fail("a key without a signature, or the other way round")
if "key" in last:
    is_signed = signed(by, re.match(rb'{"manifest":({[^}]*})', manifest)[1], exact(last["signature"]))
    if is_signed is False: fail("the signature is wrong")
    if is_signed is None: by += ", which was not checked: there is no openssl"
print(f"right: {count['threads']} threads, {count['commits']} commits, signed by {by}")
