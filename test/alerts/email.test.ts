// Mails through a real SMTP server, and relays that do not do what they should.

import { createServer, type AddressInfo, type Socket } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { AlertReceiver } from '../../src/alerts/types.ts'
import { alert, change, receiverOf, sendTo as send, startRelay } from '../support/alert-world.ts'
import { createAuthority } from '../support/certificates.ts'

const authority = createAuthority()
const own = authority.issue({ names: ['localhost'] })

const receiver = (written: object): AlertReceiver =>
  receiverOf({
    type: 'email',
    host: 'localhost',
    sender: 'gw@depot.example',
    recipients: ['a@x.example', 'b@x.example'],
    ...written,
  })

/** Says what it is told to, line by line, whatever the client sends. */
async function startWrongRelay(serve: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => undefined))
    serve(socket)
  }).listen(0, 'localhost')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  await new Promise((resolve) => {
    server.once('listening', resolve)
  })
  return (server.address() as AddressInfo).port
}

describe('a mail', () => {
  test('goes to all recipients over STARTTLS with user and password, as plain text', async () => {
    const logins: unknown[] = []
    const { port, mails } = await startRelay({
      ...own,
      authOptional: false,
      onAuth({ username, password }, _session, done) {
        logins.push([username, password])
        done(null, { user: String(username) })
      },
    })
    const to = receiver({ port, user: 'gw', password: 'p@ss', ca: authority.ca })
    expect(await send(to)).toEqual({
      kind: 'sent',
      detail: expect.stringMatching(/^250 .*queued as 12345/),
      warning: null,
    })
    expect(logins).toEqual([['gw', 'p@ss']])
    const [mail] = mails
    expect(mail).toMatchObject({ from: 'gw@depot.example', to: ['a@x.example', 'b@x.example'], user: 'gw' })
    expect(mail?.text).toMatch(/^Subject: \[depot-north\] RAISED error DEAD_LETTERS/m)
    expect(mail?.text).toMatch(/^Content-Type: text\/plain; charset=utf-8/m)
    expect(mail?.text).toMatch(/^Message-ID: <alert-1@depot.example>/m)
    expect(mail?.text).toMatch(/^Auto-Submitted: auto-generated/m)
    expect(mail?.text).toContain('  act   What to do.')
    expect(to.target).toBe(`localhost:${port} to a@x.example, b@x.example`)
    expect(await to.check(AbortSignal.timeout(5000))).toMatchObject({ kind: 'sent' })
    expect(mails).toHaveLength(1)
  })

  test('goes over TLS from the first byte, and without TLS where the config says so', async () => {
    const secure = await startRelay({ ...own, secure: true })
    expect((await send(receiver({ port: secure.port, security: 'tls', ca: authority.ca }))).kind).toBe('sent')
    const plain = await startRelay({ disabledCommands: ['STARTTLS'] })
    expect((await send(receiver({ port: plain.port, security: 'none' }))).kind).toBe('sent')
    expect(secure.mails.length + plain.mails.length).toBe(2)
  })

  test('has no header from a text of a condition, and no second mail', async () => {
    const { port, mails } = await startRelay({ disabledCommands: ['STARTTLS'] })
    const evil = 'x\r\nBcc: all@x.example\r\n\r\n.\r\nMAIL FROM:<evil@x>\u202e'
    const one = alert({
      headline: evil,
      sentence: evil,
      gateway: 'depot',
      changes: [change('X', { key: evil, what: evil })],
    })
    expect((await send(receiver({ port, security: 'none' }), one)).kind).toBe('sent')
    expect(mails).toHaveLength(1)
    expect(mails[0]?.text).not.toMatch(/^Bcc:/im)
    expect(mails[0]?.to).toEqual(['a@x.example', 'b@x.example'])
  })

  test('that a relay refuses for some recipients is sent, with a warning that names them', async () => {
    const { port, mails } = await startRelay({
      disabledCommands: ['STARTTLS'],
      onRcptTo: ({ address }, _session, done) =>
        done(address.startsWith('b') ? new Error('no such user here') : null),
    })
    expect(await send(receiver({ port, security: 'none' }))).toMatchObject({
      kind: 'sent',
      warning: expect.stringMatching(/^1 recipient refused: b@x.example \(.*no such user here\)/),
    })
    expect(mails[0]?.to).toEqual(['a@x.example'])
  })
})

describe('a mail that fails', () => {
  test('because of a wrong password names the reply of the relay, and not the password', async () => {
    const { port } = await startRelay({
      ...own,
      onAuth: ({ password }, _session, done) => done(new Error(`wrong password ${password}`)),
    })
    const sent = await send(receiver({ port, user: 'gw', password: 'top-secret', ca: authority.ca }))
    expect(sent).toMatchObject({
      why: expect.stringMatching(/^The relay answers AUTH with 535 .*wrong password \*\*\*/),
      act: 'Check user and password of the receiver.',
    })
  })

  test('because the relay has no STARTTLS is not sent in clear', async () => {
    const { port, mails } = await startRelay({ disabledCommands: ['STARTTLS'] })
    const sent = await send(receiver({ port }))
    expect(sent).toMatchObject({ kind: 'failed', act: expect.stringContaining('`security` (now starttls)') })
    expect(mails).toEqual([])
  })

  test('because of an unknown authority is not sent', async () => {
    const { port, mails } = await startRelay({ ...own })
    expect(await send(receiver({ port }))).toMatchObject({ kind: 'failed' })
    expect(mails).toEqual([])
  })

  test('because all recipients or the sender are refused says what to check', async () => {
    const { port } = await startRelay({
      disabledCommands: ['STARTTLS'],
      onRcptTo: (_address, _session, done) => done(new Error('relaying denied')),
    })
    expect(await send(receiver({ port, security: 'none' }))).toMatchObject({
      why: expect.stringContaining('relaying denied'),
      act: expect.stringContaining('`recipients`'),
    })
  })

  test.each([
    ['says nothing', () => undefined],
    [
      'sends its greeting without end',
      (socket: Socket) => {
        const timer = setInterval(() => socket.write('220-still greeting\r\n'), 10)
        socket.on('close', () => clearInterval(timer))
      },
    ],
    ['stops after EHLO', (socket: Socket) => void socket.write('220 relay ESMTP\r\n')],
  ])('because the relay %s ends with its timeout', async (_, serve) => {
    const port = await startWrongRelay(serve)
    const startedMs = performance.now()
    expect(await send(receiver({ port, security: 'none', timeout: '120ms' }))).toMatchObject({
      kind: 'failed',
      why: expect.stringMatching(/longer than 120 ms|time/i),
    })
    expect(performance.now() - startedMs).toBeLessThan(1500)
  })

  test.each([
    ['closes at once', (socket: Socket) => void socket.end()],
    ['is an HTTP server', (socket: Socket) => void socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')],
    [
      'floods',
      (socket: Socket) => {
        const flood = () => {
          while (socket.writable && socket.write('x'.repeat(65_536)));
        }
        socket.on('drain', flood)
        flood()
      },
    ],
    ['is full', (socket: Socket) => void socket.write('421 4.3.2 too many connections\r\n')],
  ])('because the relay %s fails with the cause', async (_, serve) => {
    const port = await startWrongRelay(serve)
    const sent = await send(receiver({ port, security: 'none', timeout: '2s' }))
    expect(sent.kind).toBe('failed')
    expect((sent as { why: string }).why.length).toBeLessThan(500)
    expect((sent as { why: string }).why).not.toMatch(/longer than|TLS/)
  })

  test('because nothing listens says so', async () => {
    expect(await send(receiver({ port: 1, security: 'none' }))).toMatchObject({
      why: expect.stringMatching(/^Nothing listens on localhost:1 |^Nothing listens on 127\.0\.0\.1:1 /),
    })
  })
})
