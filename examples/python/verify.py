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

N, T, YES = int, str, lambda v: v is True  # a number from 0 on, a text, and what is there only if it is true
HASH, VERSION = (lambda v: re.fullmatch("[0-9a-f]{64}", v)), (lambda v: re.fullmatch("0|[1-9][0-9]*", v))
BASE64, TEXTS = (lambda v: exact(v) is not None), (lambda v: type(v) is list and all(type(t) is str for t in v))
FORMS = {  # by the first name of a line; what ends with a ? may be absent
    "file": {"file": T, "format": N, "program?": T, "created": T, "prefix": T, "tenant?": T, "threads?": TEXTS, "from": N, "to": N, "chains?": YES, "contents?": YES},
    "seq": {"seq": N, "subject": T, "contentType": T, "version": VERSION, "chain": HASH, "body?": T, "base64?": BASE64},
    "end": {"end": T, "commits": N, "version": VERSION, "seq": N, "chain": HASH},
    "content": {"content": HASH, "tenant": T, "size": N, "offset": N, "piece?": BASE64, "absent?": T},
    "manifest": {"manifest": lambda v: form(v, "counts"), "key?": T, "signature?": BASE64},
    "counts": {"lines": N, "threads": N, "others": N, "commits": N, "bytes": N, "lastSeq": N, "contents?": N, "absent?": N, "digest": HASH},
}

def form(line, kind):  # whether a line has the names of its kind, each with its type, and no others
    names = FORMS.get(kind, {})
    for name, right in names.items():
        if name.rstrip("?") not in line:
            if name.endswith("?"): continue
            fail(f"it has no {name}")
        value = line[name.rstrip("?")]
        is_right = type(value) is int and value >= 0 if right is N else type(value) is str if right is T else right(value)
        if not is_right: fail(f"{name.rstrip('?')} has the wrong form")
    for name in line:
        if name not in names and name + "?" not in names: fail(f"a line of no known form: {name}")
    return True

def read(text): return json.loads(text, object_pairs_hook=once, parse_constant=lambda name: fail(f"{name} is no JSON"))

def aggregate(subject):  # the tenant, and whether it is a thread; the others come before
    global threads
    at = re.fullmatch(re.escape(header["prefix"]) + r"\.log\.([^.\s*>]+)\.([^.\s*>]+)", subject)
    if not at or subject in ended or header.get("tenant", at[1]) != at[1]: fail(f"{subject} is no subject of the file, or stands twice")
    thread = at[2].startswith(("T-", "thrd_"))
    if threads and not thread: fail(f"{subject} is no thread, and stands after one")
    threads = thread
    return at[1], thread

def commit(line):
    global opened, chain, version, purged, of
    if header.get("chains") or ("body" in line) == ("base64" in line): fail("a commit has one body, and none in a file of chains")
    if opened is None: of, opened, chain, version, purged = aggregate(line["subject"]), {"end": line["subject"], "commits": 0, "seq": 0}, "", 0, False
    if line["subject"] != opened["end"]: fail(f"a commit of {line['subject']} stands elsewhere")
    if purged or not opened["seq"] < line["seq"] <= header["to"]: fail("what follows is not later")
    if line["contentType"] != "application/cloudevents-batch+json": fail("the content type is not that of events")
    body = exact(line["base64"]) if "base64" in line else line["body"].encode()
    if "base64" in line and is_text(body): fail("a text in base64")
    events = read(body.decode(errors="replace"))
    if type(events) is not list or not events: fail("a body is no list of events")
    right = hashlib.sha256(chain.encode() + body).hexdigest() == line["chain"] and version + len(events) == int(line["version"])
    purged = not right and opened["commits"] == 0 and any(e["type"] == "lifecycle.deleted" and e["data"].get("purge") is True for e in events)
    if not right and not purged or int(line["version"]) < len(events): fail(f"the chain of {line['subject']} is broken")
    chain, version = line["chain"], int(line["version"])
    opened.update(commits=opened["commits"] + 1, version=line["version"], seq=line["seq"], chain=chain)
    for digest in re.findall(rb"[0-9a-f]{64}", body): unnamed.discard((of[0], digest.decode()))

def is_text(body):
    try: return bool(body.decode())
    except UnicodeDecodeError: return False

def end(line):
    global opened, of, highest
    if header.get("chains"): of = aggregate(line["end"])
    elif line != opened: fail("not the end of what stands before it")
    if not line["commits"] or line["seq"] > header["to"]: fail("an end of nothing")
    if unnamed: fail("a content that the thread after it does not name")
    count["commits"] += line["commits"]; count["threads" if of[1] else "others"] += 1
    ended.add(line["end"]); opened = None; highest = max(highest, line["seq"])

def content(line):
    global piece
    name = line["tenant"], line["content"]
    if not header.get("contents") or opened or header.get("tenant", name[0]) != name[0]: fail("a content stands elsewhere")
    if not piece:
        if name in contents: fail(f"the content {name[1]} stands twice")
        contents.add(name); unnamed.add(name)
    if "absent" in line:
        if "piece" in line: fail("a piece of an absent content")
        piece = None; count["absent"] += 1
        return
    if not piece: piece = line, hashlib.sha256(), 0
    if line["offset"] != piece[2] or line["size"] != piece[0]["size"]: fail("a piece of a content is missing")
    data = exact(line.get("piece", "")); piece[1].update(data); piece = piece[0], piece[1], piece[2] + len(data)
    if piece[2] >= line["size"]:
        if piece[2] > line["size"] or piece[1].hexdigest() != name[1]: fail(f"the content {name[1]} was altered")
        piece = None; count["contents"] += 1
    elif not data: fail("an empty piece of a content")

def check(raw):
    global header, last
    if last: fail("something follows the manifest")
    if not raw.endswith(b"\n"): fail("the line has no end: the file was cut off")
    line = read(raw.decode())
    kind = next(iter(line))
    if not raw.startswith(b'{"' + kind.encode() + b'":') or kind == "counts" or (kind == "file") != (n == 1): fail("a line of no known form, or elsewhere")
    form(line, kind)
    if kind == "manifest":
        last = line, re.match(rb'{"manifest":({[^}]*})', raw)[1]
        return
    digest.update(raw); count["lines"] += 1; count["bytes"] += len(raw)
    if piece and (kind, line.get("tenant"), line.get("content")) != ("content", piece[0]["tenant"], piece[0]["content"]): fail("a content is not whole")
    if kind == "file": header = line
    else: {"seq": commit, "end": end, "content": content}[kind](line)
    if n == 1 and (line["file"], line["format"]) != ("skein-export", 1): fail("not an export of format 1")

digest, count = hashlib.sha256(), dict.fromkeys(("lines", "threads", "others", "commits", "bytes", "contents", "absent"), 0)
header = last = opened = of = None
chain, version, purged, threads, highest, n = "", 0, False, False, 0, 0
ended, contents, unnamed = set(), set(), set()  # subjects; contents, each with its tenant; those of them that no commit has named yet
piece = None  # of the content whose pieces are read: its line, its hash, how many bytes there were
for n, raw in enumerate(open(sys.argv[1], "rb"), 1):
    try: check(raw)
    except (ValueError, TypeError, AttributeError, LookupError, StopIteration, RecursionError) as e: fail(f"{type(e).__name__}: {e}")
if not last: fail("no manifest: the file was cut off")
m, line, manifest = last[0]["manifest"], *last
if opened or piece or unnamed or m["digest"] != digest.hexdigest() or m["lastSeq"] != highest or any(m.get(k, 0) != count[k] for k in count): fail("the file is not what its manifest says")
by = line.get("key", "nobody")
if ("key" in line) != ("signature" in line): fail("a key without a signature, or the other way round")
if "key" in line:
    is_signed = signed(by, manifest, exact(line["signature"]))
    if is_signed is False: fail("the signature is wrong")
    if is_signed is None: by += ", which was not checked: there is no openssl"
print(f"right: {count['threads']} threads, {count['commits']} commits, signed by {by}")
