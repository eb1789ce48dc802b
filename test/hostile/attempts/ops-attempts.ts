// ops-attempts.ts: attempts at the ops port, as raw HTTP: other hosts, web pages, proxies, methods, broken requests.

import { connect } from 'node:net'
import type { HostileWorld } from '../hostile-world.ts'
import type { Attempt } from './attempt.ts'

const answerMs = 4000

/** The status line of the first answer and, where it is named, a header; or `closed` or `no answer`. */
async function request(
  world: HostileWorld,
  head: readonly string[],
  body = '',
): Promise<{ text: string; status: string }> {
  const port = Number(new URL(world.opsUrl).port)
  const socket = connect({ port, host: '127.0.0.1' })
  let text = ''
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1')
  })
  socket.on('error', () => socket.destroy())
  socket.write(`${head.map((line) => line.replaceAll('PORT', String(port))).join('\r\n')}\r\n\r\n${body}`)
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, answerMs)
    socket.once('close', () => {
      clearTimeout(timer)
      resolve()
    })
  })
  const status = /^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? (socket.destroyed ? 'closed' : 'no answer')
  socket.destroy()
  return { text, status }
}

const local = 'Host: localhost:PORT'
const close = 'Connection: close'

/** `expected` and what is seen: the status of the first answer. */
function asks(who: string, what: string, expected: string, head: readonly string[], body = ''): Attempt {
  return {
    who,
    where: 'ops',
    what,
    expected,
    act: async (world) => (await request(world, [...head, close], body)).status,
  }
}

const page = 'a web page'
const neighbour = 'another user of the machine'
const proxied = 'a stranger behind a reverse proxy'
const scanner = 'a port scanner'

const reads: readonly Attempt[] = [
  asks(neighbour, 'reads the status', '200', ['GET /status HTTP/1.1', local]),
  asks('a probe', 'asks for /healthz by address', '200', ['GET /healthz HTTP/1.1', 'Host: 127.0.0.1:PORT']),
  ...[
    '/',
    '/status',
    '/healthz',
    '/readyz',
    '/metrics',
    '/devices',
    '/dead-letters',
    '/ledger',
    '/quarantine',
    '/tap',
  ].map((path) =>
    asks(`${page} after DNS rebinding`, `reads ${path}`, '403', [
      `GET ${path} HTTP/1.1`,
      'Host: attacker.example:PORT',
    ]),
  ),
  asks(page, 'reads the status from another site', '403', [
    'GET /status HTTP/1.1',
    local,
    'Origin: http://attacker.example',
    'Sec-Fetch-Site: cross-site',
  ]),
  asks(page, 'embeds the status as an image of another site', '403', [
    'GET /status HTTP/1.1',
    local,
    'Sec-Fetch-Site: cross-site',
    'Sec-Fetch-Mode: no-cors',
    'Sec-Fetch-Dest: image',
  ]),
  asks(scanner, 'names no host', '400', ['GET /status HTTP/1.1']),
  asks(scanner, 'names two hosts', '403', ['GET /status HTTP/1.1', local, 'Host: attacker.example']),
  asks(scanner, 'names an empty host', '403', ['GET /status HTTP/1.1', 'Host:']),
  asks(scanner, 'names a host with a trailing dot and a port of its own', '403', [
    'GET /status HTTP/1.1',
    'Host: localhost.attacker.example:80',
  ]),
  asks(scanner, 'requests another host in absolute form', '403', [
    'GET http://attacker.example/status HTTP/1.1',
    'Host: attacker.example',
  ]),
]

const changePaths = [
  '/control/reload',
  '/control/probe',
  '/control/dead-letters/purge?all=1&yes=1',
  '/control/quarantine/drop?all=1&yes=1',
  '/control/batches/drop?all=1&yes=1',
]

const changes: readonly Attempt[] = [
  ...changePaths.map((path) =>
    asks(neighbour, `sends POST ${path} over TCP`, '403', [
      `POST ${path} HTTP/1.1`,
      local,
      'Content-Length: 0',
    ]),
  ),
  asks(page, 'posts a form to /control/reload', '403', [
    'POST /control/reload HTTP/1.1',
    local,
    'Origin: http://attacker.example',
    'Content-Type: text/plain',
    'Content-Length: 0',
  ]),
  asks(proxied, 'sends POST /control/reload through the proxy', '403', [
    'POST /control/reload HTTP/1.1',
    local,
    'X-Forwarded-For: 203.0.113.9',
    'Content-Length: 0',
  ]),
]

const broken: readonly Attempt[] = [
  asks(scanner, 'sends PUT /status', '405', ['PUT /status HTTP/1.1', local, 'Content-Length: 0']),
  asks(scanner, 'sends DELETE /dead-letters', '405', ['DELETE /dead-letters HTTP/1.1', local]),
  asks(scanner, 'sends TRACE', '405', ['TRACE /status HTTP/1.1', local]),
  asks(scanner, 'asks for a tunnel', 'closed', ['CONNECT 127.0.0.1:22 HTTP/1.1', local]),
  asks(scanner, 'asks for a WebSocket', '200', [
    'GET /status HTTP/1.1',
    local,
    'Upgrade: websocket',
    'Sec-WebSocket-Key: x',
  ]),
  asks(scanner, 'leaves the directory', '404', ['GET /../../etc/passwd HTTP/1.1', local]),
  asks(scanner, 'leaves the directory with escapes', '404', [
    'GET /%2e%2e%2f%2e%2e%2fetc%2fpasswd HTTP/1.1',
    local,
  ]),
  asks(scanner, 'requests a path with broken escapes', '404', ['GET /%ff%zz HTTP/1.1', local]),
  asks(scanner, 'names a property of every object', '404', ['GET /__proto__ HTTP/1.1', local]),
  asks(scanner, 'sends a header of 20 KB', '431', [
    'GET /status HTTP/1.1',
    local,
    `X: ${'x'.repeat(20_000)}`,
  ]),
  asks(
    scanner,
    'smuggles a second request with two lengths',
    '400',
    ['POST /control/reload HTTP/1.1', local, 'Content-Length: 4', 'Transfer-Encoding: chunked'],
    '0\r\n\r\nGET /status HTTP/1.1\r\n\r\n',
  ),
  asks(scanner, 'sends something that is not HTTP', '400', ['\u0010\u000e\u0000\u0004MQTT']),
]

const safeHeaders = [
  'x-content-type-options: nosniff',
  'content-security-policy:',
  'cross-origin-resource-policy: same-origin',
]

const answers: readonly Attempt[] = [
  ...['/', '/status', '/metrics', '/unknown'].map((path): Attempt => ({
    who: 'a browser',
    where: 'ops',
    what: `opens ${path}`,
    expected: 'headers against sniffing, scripts and embedding',
    async act(world) {
      const { text } = await request(world, [`GET ${path} HTTP/1.1`, local, close])
      const missing = safeHeaders.filter((header) => !text.toLowerCase().includes(header))
      return missing.length === 0 ? this.expected : `without ${missing.join(' and ')}`
    },
  })),
  {
    who: neighbour,
    where: 'ops',
    what: 'holds 64 idle connections while a probe asks for /healthz and /readyz',
    expected: '200 200',
    async act(world) {
      const port = Number(new URL(world.opsUrl).port)
      const held = Array.from({ length: 64 }, () => connect({ port, host: '127.0.0.1' }))
      for (const socket of held) socket.on('error', () => socket.destroy())
      await Promise.all(
        held.map(
          (socket) =>
            new Promise<void>((resolve) =>
              socket.once('connect', () => resolve()).once('close', () => resolve()),
            ),
        ),
      )
      const health = await request(world, ['GET /healthz HTTP/1.1', local, close])
      const ready = await request(world, ['GET /readyz HTTP/1.1', local, close])
      for (const socket of held) socket.destroy()
      return `${health.status} ${ready.status}`
    },
  },
]

export const opsAttempts: readonly Attempt[] = [...reads, ...changes, ...broken, ...answers]
