"""What Redis does for us in one step: scripts, called by their digests.

Everything of one namespace stands in one hash, so that Redis can lose all of it or nothing, and a
cluster keeps it in one slot. Its fields: ``=NAME`` is a document, ``VERSION STAMP BODY``; the
others say of which data set they are:

* ``.epoch`` – a random name, given when the data set was first met;
* ``.run`` – the run of the server (``run_id``) in which it is valid: what a server that was
  started again, or a promoted replica, has on its disk may be older than what was last said;
* ``.count`` – of the writes since then; epoch and count together are a version, used once;
* ``.since`` – when it was first met.

Every script is told which data set its caller knows and how far it had come, and does nothing on
another one. Times are microseconds of the server's clock.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

STRANGE: Final = b"strange"
"""The caller does not know this data set: nothing was done."""
DONE: Final = b"done"
CONFLICT: Final = b"conflict"
EARLY: Final = b"early"
"""The data set is too young for this write: nothing was done."""


@dataclass(frozen=True, slots=True)
class Script:
    """One script, and the digest by which the server knows it."""

    text: str
    digest: str
    writes: bool
    """Whether a lost answer leaves a doubt."""


def _script(text: str, *, writes: bool = False) -> Script:
    digest = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
    return Script(text, digest, writes)


_BEGIN: Final = """
local key = KEYS[1]
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)') or ''
local clock = redis.call('TIME')
local now = string.format('%.0f', clock[1] * 1000000 + clock[2])
local set = redis.call('HMGET', key, '.epoch', '.run', '.count', '.since')
local epoch, count, since = set[1], tonumber(set[3] or 0), set[4]
local went_back = epoch == ARGV[1] and count < tonumber(ARGV[2])
local function version()
    return string.format('%s-%.0f', epoch, count)
end
"""

_KNOWN: Final = (
    _BEGIN
    + """
if epoch ~= ARGV[1] or set[2] ~= run or went_back then
    return {'strange'}
end
"""
)

READ: Final = _script(
    _KNOWN
    + """
return {'done', now, count, redis.call('HGET', key, '=' .. ARGV[3])}
"""
)

SCAN: Final = _script(
    _KNOWN
    + """
local found = {'done', now, count}
local prefix = '=' .. ARGV[3]
for _, field in ipairs(redis.call('HKEYS', key)) do
    if string.sub(field, 1, #prefix) == prefix then
        found[#found + 1] = string.sub(field, 2)
        found[#found + 1] = redis.call('HGET', key, field)
    end
end
return found
"""
)

# arguments: name, version ('0' = absent), grace, channel ('' = tell nobody), sender, body (none =
# delete). The first write of a script is the one that a full server refuses, so it has everything.
SWAP: Final = _script(
    _KNOWN
    + """
local field, body = '=' .. ARGV[3], ARGV[8]
local held = redis.call('HGET', key, field)
if (held and string.match(held, '^%S+') or '0') ~= ARGV[4] then
    return {'conflict', now, count}
end
if not body and not held then
    return {'done', now, count, '0'}
end
local age, grace = now - since, tonumber(ARGV[5])
if body and age < grace then
    if age < 0 then -- the clock was put back: waited for anew, as it may never get there again
        redis.call('HSET', key, '.since', now)
        age = 0
    end
    return {'early', now, count, grace - age}
end
count = count + 1
if body then
    redis.call('HSET', key, '.count', count, field, version() .. ' ' .. now .. ' ' .. body)
else
    redis.call('HSET', key, '.count', count)
    redis.call('HDEL', key, field)
end
if ARGV[6] ~= '' then
    redis.pcall('PUBLISH', ARGV[6], ARGV[7])
end
return {'done', now, count, body and version() or '0'}
""",
    writes=True,
)

# arguments: a name for a new epoch, grace, channel, sender, and names and bodies of submitters that
# the caller remembers. Nobody listens on the channel of the first PUBLISH: it asks for the right.
JOIN: Final = _script(
    _BEGIN
    + """
redis.call('PUBLISH', ARGV[5] .. ':' .. ARGV[6], '')
local is_new = not epoch or set[2] ~= run or went_back
if is_new then
    epoch, count, since = ARGV[3], 0, now
    redis.call('HSET', key, '.epoch', epoch, '.run', run, '.count', count, '.since', since)
    for _, field in ipairs(redis.call('HKEYS', key)) do
        if string.sub(field, 1, 11) == '=submitter/' then
            local held = redis.call('HGET', key, field)
            local rest = string.sub(held, string.find(held, ' '), -1)
            count = count + 1
            redis.call('HSET', key, field, version() .. rest)
        elseif string.sub(field, 1, 1) == '=' then
            redis.call('HDEL', key, field)
        end
    end
end
if now - since < tonumber(ARGV[4]) then
    for i = 7, #ARGV, 2 do
        local field = '=' .. ARGV[i]
        if redis.call('HEXISTS', key, field) == 0 then
            count = count + 1
            redis.call('HSET', key, field, version() .. ' ' .. now .. ' ' .. ARGV[i + 1])
        end
    end
end
if count ~= tonumber(set[3] or 0) or is_new then
    redis.call('HSET', key, '.count', count)
    redis.call('PUBLISH', ARGV[5], ARGV[6])
end
return {'done', now, count, epoch, run}
""",
    writes=True,
)

INAUGURATE: Final = _script(
    _KNOWN
    + """
redis.call('HSET', key, '.since', 0)
redis.call('PUBLISH', ARGV[3], ARGV[4])
return {'done', now, count}
""",
    writes=True,
)
