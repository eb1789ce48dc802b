// Marked secrets in every place that can hold one, and everything that comes out of the gateway read for them: the log at
// trace, all paths of the ops port, what commands print, the support bundle, and the files of the spool directory.

import { execFileSync } from 'node:child_process'
import { readFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { xsalsa20poly1305 } from '@noble/ciphers/salsa.js'
import { connectAsync } from 'mqtt'
import { describe, expect, onTestFinished, test } from 'vitest'
import { Secret } from '../../src/std/secret.ts'
import { hashPassword } from '../../src/std/passwords/passwords.ts'
import { createAuthority } from '../support/certificates.ts'
import { runCli } from '../support/cli-world.ts'
import { startHttpReceiver, startRelay } from '../support/alert-world.ts'
import { startConnectProxy } from '../support/connect-proxy.ts'
import { newFolder } from '../support/folders.ts'
import { createDevice } from '../support/mqtt-device.ts'
import { messageOf, startPipeline, topicOf } from '../support/pipeline-world.ts'

/** No other text has them. Nothing that comes out may. */
const marks = {
  clientPassword: 'marked-client-password',
  wrongPassword: 'marked-wrong-password',
  token: 'marked-token-of-a-client',
  wrongToken: 'marked.eyJhbGciOiJIUzI1NiJ9.wrong-token',
  secretKey: 'marked-secret-access-key',
  sessionToken: 'marked-session-token',
  proxyPassword: 'marked-proxy-password',
  opsPassword: 'marked-ops-password',
  wrongOpsPassword: 'marked-wrong-ops-password',
  webhookPath: 'marked-path-of-a-webhook',
  webhookQuery: 'marked-query-of-a-webhook',
  webhookUser: 'marked-user-of-a-webhook',
  webhookSecret: 'marked-secret-of-a-webhook',
  webhookHeader: 'marked-header-of-a-webhook',
  smtpPassword: 'marked-smtp-password',
  hookArgument: 'marked-argument-of-a-command',
  monitorPath: 'marked-path-of-a-monitor',
  propertyOfConnect: 'marked-user-property-of-a-connect',
  // Of at most 32 bytes.
  sharedKey: 'marked-key-of-all-phones',
  deviceKey: 'marked-key-of-a-phone',
} as const

const env = {
  AWS_ACCESS_KEY_ID: 'KNOWN',
  AWS_SECRET_ACCESS_KEY: marks.secretKey,
  AWS_SESSION_TOKEN: marks.sessionToken,
  CLIENT_PASSWORD: marks.clientPassword,
  CLIENT_TOKEN: marks.token,
  PROXY_PASSWORD: marks.proxyPassword,
  WEBHOOK_SECRET: marks.webhookSecret,
  WEBHOOK_HEADER: `Bearer ${marks.webhookHeader}`,
  SMTP_PASSWORD: marks.smtpPassword,
  PHONE_SECRET: marks.sharedKey,
  TOO_LONG_KEY: 'marked-key-of-all-phones'.repeat(2),
  WRONG_KEYS: 'marked-key-of-a-phone',
  PATH: '/nowhere',
}

/** As text and as base64, as in an Authorization header; the key and the hash of a file by a line of each. */
function formsOf(secrets: readonly string[]): string[] {
  return secrets.flatMap((secret) => [
    secret,
    Buffer.from(secret).toString('base64').replace(/=+$/, '').slice(0, -1),
    Buffer.from(`ann:${secret}`).toString('base64').replace(/=+$/, '').slice(0, -1),
  ])
}

async function filesBelow(folder: string): Promise<string> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  return (await Promise.all(files.map((file) => readFile(file, 'latin1')))).join('\n')
}

function expectNone(shown: ReadonlyMap<string, string>, secrets: readonly string[]): void {
  const found = [...shown].flatMap(([where, text]) =>
    formsOf(secrets)
      .filter((form) => text.includes(form))
      .map(
        (form) => `${where}: ${text.slice(Math.max(0, text.indexOf(form) - 100), text.indexOf(form) + 40)}`,
      ),
  )
  expect(found).toEqual([])
}

/** A location of OwnTracks in a box. */
function encrypted(secret: string): string {
  const key = new Uint8Array(32)
  key.set(Buffer.from(secret))
  const nonce = Buffer.alloc(24, 3)
  const text = JSON.stringify({ _type: 'location', lat: 1.5, lon: 2.5, tst: 1_767_085_201 })
  const box = xsalsa20poly1305(key, nonce).encrypt(Buffer.from(text))
  return JSON.stringify({ _type: 'encrypted', data: Buffer.concat([nonce, box]).toString('base64') })
}

/** A password with each character that ends a part of a URL, and URLs that are none. */
const wrongUrls = [
  'pu:MARK@proxy:3128',
  'http://pu:xx/MARK@proxy:3128',
  'http://pu:MARK/xx@proxy:3128',
  'http://pu:12/MARK@proxy:3128',
  'http://pu:MARK?x@proxy',
  'http://pu:MARK#x@proxy',
  'http://pu:MARK x@proxy',
  'http://pu:x MARK@proxy',
  'http://pu:x@MARK@proxy',
  'http://pu:x"MARK@proxy',
  'http:/pu:MARK@proxy',
  'http:pu:MARK@proxy',
  '//pu:MARK@proxy',
  'https://MARK@host',
  'https://host/?token=MARK',
  'https://host/a#MARK',
  'ws://host/pu:MARK@x',
]

function isValid(url: string): boolean {
  return URL.canParse(url) && !/[@?#]/.test(url)
}

function expectHidden(shown: ReadonlyMap<string, string>): void {
  const found = [...shown].filter(([, text]) => text.includes('MARK'))
  expect(found).toEqual([])
}

describe('marked secrets', () => {
  test('are in nothing that comes out of a running gateway', async () => {
    const folder = await newFolder()
    const { cert, key } = createAuthority().issue()
    const hash = await hashPassword(marks.opsPassword, 12)
    const shown = new Map<string, string>()
    await Promise.all([
      writeFile(join(folder, 'cert.pem'), cert),
      writeFile(join(folder, 'key.pem'), key, { mode: 0o600 }),
      writeFile(join(folder, 'ops-users'), `ann:${hash}\n`, { mode: 0o600 }),
      writeFile(join(folder, 'phones.csv'), `device,key\nann/phone,${marks.deviceKey}\n`, { mode: 0o600 }),
    ])
    const proxy = await startConnectProxy({ authorization: 'Basic another' })
    // They refuse everything, and repeat what they got.
    const receiver = await startHttpReceiver({
      answer: (response, got) => void response.writeHead(403).end(JSON.stringify(got)),
    })
    const relay = await startRelay({
      disabledCommands: ['STARTTLS'],
      allowInsecureAuth: true,
      onAuth: ({ username, password }, _session, done) => done(new Error(`no ${username} with ${password}`)),
    })
    const pipeline = await startPipeline({
      folder,
      sandbox: { accounts: [{ accessKeyId: 'KNOWN', secret: new Secret('another') }] },
      config: (url) => configText(url, proxy.url) + alertsText(receiver.url, relay.port),
      deps: { env },
    })
    const { mqtt, ops, control } = pipeline.gateway.addresses
    const ports = mqtt.map((address) => Number(new URL(address).port))
    const connect = async (clientId: string, username: string, password: string) => {
      const device = await createDevice({ port: ports[0]!, clientId })
      onTestFinished(() => device.destroy())
      await device.connect({ username, password: Buffer.from(password) }).catch(() => undefined)
      return device
    }
    const device = await connect('truck-1', 'alice', marks.clientPassword)
    await connect('truck-2', 'alice', marks.wrongPassword)
    await connect('truck-3', marks.token, 'x')
    await connect('truck-4', marks.wrongToken, marks.wrongPassword)
    device.publish({ topic: topicOf('truck-1'), payload: messageOf(1), messageId: 1 })
    device.publish({ topic: topicOf('truck-1'), payload: 'no JSON', messageId: 2 })
    const phones = [
      { topic: 'owntracks/ann/phone', payload: encrypted(marks.deviceKey) },
      { topic: 'owntracks/bob/phone', payload: encrypted(marks.sharedKey) },
      { topic: 'owntracks/ann/phone', payload: encrypted('another') },
    ]
    for (const [index, one] of phones.entries()) device.publish({ ...one, messageId: 3 + index })
    await device.acked(5)
    const userProperties = { token: marks.propertyOfConnect, firmware: '4.1-of-truck-1' }
    const client = await connectAsync(mqtt[0]!, {
      protocolVersion: 5,
      clientId: 'truck-1',
      username: 'alice',
      password: marks.clientPassword,
      properties: { userProperties },
    })
    onTestFinished(() => client.endAsync())
    await client.publishAsync(topicOf('truck-1'), messageOf(2), { qos: 1 })
    await pipeline.until(() => pipeline.status().conditions.length >= 2)
    const failed = () =>
      new Set(pipeline.events.map((event) => (event.kind === 'alert_failed' ? event.receiver : '')))
    await pipeline.until(() => failed().size === 5)

    const html = 'text/html'
    const basic = (password: string) => `Basic ${Buffer.from(`ann:${password}`).toString('base64')}`
    const request = async (path: string, password: string, accept = '*/*') => {
      const answer = await fetch(ops + path, { headers: { authorization: basic(password), accept } })
      const headers = JSON.stringify([...answer.headers])
      if (path.startsWith('/tap')) return answer.body?.cancel()
      if (path.startsWith('/events')) {
        const reader = answer.body!.getReader()
        shown.set(path, new TextDecoder().decode((await reader.read()).value))
        return reader.cancel()
      }
      shown.set(`${path} ${answer.status}${accept === html ? ' html' : ''}`, (await answer.text()) + headers)
    }
    const document = await (
      await fetch(`${ops}/openapi.json`, { headers: { authorization: basic(marks.opsPassword) } })
    ).json()
    const paths = Object.entries((document as { paths: Record<string, object> }).paths)
      .filter(([, methods]) => 'get' in methods)
      .map(([path]) => path.replaceAll(/\{\w+\}/g, 'truck-1'))
    expect(paths.length).toBeGreaterThan(10)
    for (const path of [...paths, '/devices/truck-2?messages=1&explain=1', '/nothing', '/devices?limit=x'])
      await request(path, marks.opsPassword)
    // As a browser, and as a program that has no rights.
    for (const path of ['/', ...paths.filter((one) => one.startsWith('/page/'))])
      await request(path, marks.opsPassword, html)
    await request('/page/device?key=truck-1', marks.opsPassword, html)
    expect([...shown.keys()].filter((name) => name.endsWith(' 200 html')).length).toBeGreaterThan(8)
    await request('/status', marks.wrongOpsPassword)
    expect([...shown.keys()]).toEqual(expect.arrayContaining(['/status 200', '/metrics 200', '/status 401']))

    const config = join(folder, 'gateway.yaml')
    const bundle = join(folder, 'bundle.tar.gz')
    const daemon = ['--socket', control.replace('unix:', '')]
    for (const argv of [
      ['check', '--config', config],
      ['check', '--config', config, '--json'],
      ['check', '--config', config, '--connect'],
      ['doctor', '--config', config],
      ['doctor', '--config', config, '--json'],
      ['status', ...daemon],
      ['status', ...daemon, '--json'],
      ['devices', ...daemon, '--json'],
      ['dead-letters', 'list', ...daemon],
      ['alerts', ...daemon],
      ['alerts', ...daemon, '--json'],
      ['alerts', 'test', ...daemon],
      ['audit', ...daemon],
      ['support-bundle', '--config', config, '--to', bundle],
    ]) {
      const { stdout, stderr } = await runCli(argv, { env })
      shown.set(argv.join(' '), stdout + stderr)
    }
    const unpacked = await newFolder()
    execFileSync('/usr/bin/env', ['tar', '-xzf', bundle, '-C', unpacked])
    shown.set('support bundle', await filesBelow(unpacked))
    await pipeline.gateway.stop('the test ends')
    shown.set('log', pipeline.log())
    // Each phone was opened with its key, and one message with neither.
    expect(shown.get('/metrics 200')).toContain('source="phones",reason="WRONG_KEY"} 1\n')
    expect(shown.get('/metrics 200')).not.toContain('ENCRYPTED')
    shown.set('events', JSON.stringify(pipeline.events))
    shown.set('spool directory', await filesBelow(join(folder, 'spool')))
    expect(shown.get('log')).toContain('client_refused')
    // Not as a part of an authorization header either.
    for (const text of shown.values()) expect(text).not.toMatch(/Signature=/)
    expect(shown.get('/devices/truck-1 200')).toContain('"token":"***","firmware":"4.1-of-truck-1"')
    expect(shown.get('support bundle')).toContain('base_url')
    expectNone(shown, [...Object.values(marks), key.split('\n')[2] ?? '', hash.split('$').at(-1) ?? ''])
  })

  test('are in no error of a config that has them in wrong places', async () => {
    const folder = await newFolder()
    const config = join(folder, 'gateway.yaml')
    const shown = new Map<string, string>()
    const wrong = [
      `delivery: { base_url: "https://ann:${marks.proxyPassword}@api.example.org" }`,
      `delivery: { base_url: "https://api.example.org", proxy: "http://ann:${marks.proxyPassword}@proxy:3128" }`,
      `delivery: { base_url: "https://api.example.org", proxy_auth: "${marks.proxyPassword}" }`,
      `delivery: { base_url: "https://api.example.org", proxy_auth: { user: ann, password: ["${marks.proxyPassword}"] } }`,
      `delivery: { base_url: "https://api.example.org", credentials: { source: keys, access_key_id: X, secret_access_key: "${marks.secretKey}\\u0001" } }`,
      `delivery: { base_url: "https://api.example.org", credentials: { source: keys, access_key_id: X, secret_access_key: { a: "${marks.secretKey}" } } }`,
      `ops: { users: [{ name: ann, password_hash: "${marks.opsPassword}", rights: [read] }] }`,
      `ingest: { broker: { access: { users: [{ name: alice, password: { x: "${marks.clientPassword}" } }] } } }`,
      `ingest: { broker: { access: { tokens: [{ name: alice, token: "marked-short" }] } } }`,
      ...[
        `{ shared: ["${marks.sharedKey}"] }`,
        `{ shared: "${marks.sharedKey}" }`,
        `{ devices: "device,key\\na,${marks.deviceKey}" }`,
        `{ devices: { a: "${marks.deviceKey}" } }`,
        `{ shared: ["\${env:TOO_LONG_KEY}"], devices: "\${env:WRONG_KEYS}" }`,
        `"${marks.sharedKey}"`,
        `{ shared: [{ key: "${marks.sharedKey}" }] }`,
      ].map((keys) => `sources: [{ name: phones, preset: owntracks, keys: ${keys} }]`),
      `ingest: { broker: { access: { users: [{ name: alice, password: "\${env:CLIENT_PASSWORD}", pasword: x }] } } }`,
    ]
    for (const [index, section] of wrong.entries()) {
      await writeFile(config, `${section}\n`)
      for (const argv of [['check'], ['check', '--json'], ['doctor', '--json'], ['run']]) {
        const { stdout, stderr, status } = await runCli([...argv, '--config', config], { env })
        expect(status).not.toBe(0)
        shown.set(`${index} ${argv.join(' ')}`, stdout + stderr)
      }
    }
    expectNone(shown, [...Object.values(marks), 'marked-short'])
  })

  test('are in no error of a config with a URL that has them in any part', { timeout: 120_000 }, async () => {
    const folder = await newFolder()
    const config = join(folder, 'gateway.yaml')
    const unpacked = await newFolder()
    const shown = new Map<string, string>()
    for (const url of wrongUrls) {
      const base = 'base_url: "https://api.example.org"'
      const text = JSON.stringify(url)
      const withReference = JSON.stringify(`${url}\${env:PROXY_PASSWORD}`)
      const configs = {
        'URL options':
          `delivery: { base_url: ${text}, proxy: ${text}, providers: [{ name: x, base_url: ${text}, proxy: ${text} }] }\n` +
          `ingest: { bridges: [{ name: x, url: ${text}, topics: [a] }], broker: { listeners: [{ url: ${text} }] } }\n` +
          `ops: { listen: ${text} }\n` +
          `alerts: { receivers: [{ name: x, type: webhook, url: ${text} }], heartbeats: [{ name: y, url: ${text} }] }`,
        'other places':
          `delivery: { ${base}, timeout: ${text}, mode: ${text}, max_in_flight: ${text}, ${text}: 1, proxy: ${withReference} }\n` +
          `spool: ${text}`,
        'wrong YAML': `delivery:\n  proxy: "x" ${url}\n`,
      }
      for (const [where, written] of Object.entries(configs)) {
        await writeFile(config, `${written}\n`)
        const { stdout, stderr } = await runCli(['check', '--config', config, '--json'], { env })
        shown.set(`${where}: ${url}`, stdout + stderr)
      }
      await writeFile(config, configs['URL options'])
      const bundle = join(folder, `${shown.size}.tar.gz`)
      await runCli(['support-bundle', '--config', config, '--to', bundle], { env })
      execFileSync('/usr/bin/env', ['tar', '-xzf', bundle, '-C', unpacked])
      shown.set(`support bundle: ${url}`, await filesBelow(unpacked))
    }
    const first = shown.get(`URL options: ${wrongUrls[0]}`)
    for (const option of ['base_url', 'proxy', 'url', 'listen'])
      expect(first).toMatch(new RegExp(`${option} must [^\\n]*found a text of 18 characters`))
    expectHidden(shown)
  })

  test('are in no error of a command that gets them in a URL', async () => {
    const shown = new Map<string, string>()
    const urls = wrongUrls.flatMap((url) => [
      url,
      url.replace(/^http:/, 'mqtt:').replace(/^https:/, 'mqtts:'),
    ])
    for (const url of [
      ...urls,
      'http://ann:MARK@127.0.0.1:1',
      'mqtt://ann:MARK@127.0.0.1:1',
      'mqtt://127.0.0.1:1/?MARK',
    ])
      for (const argv of [
        ['status', '--url', url],
        ['devices', '--url', url, '--json'],
        ['tap', '--url', url],
        ['map', '--from-tap', '--preset', 'teltonika', '--url', url],
        ['publish', '--broker', url, '--topic', 'a', '{}'],
        ['simulate', '--broker', url, '--devices', '1', '--for', '1s'],
        ['learn', '--broker', url, '--for', '100ms'],
        ['sandbox', '--listen', url],
        ['status', `--no-such=${url}`],
      ]) {
        // Only what nothing listens on, so that no command waits for another machine.
        if (!url.includes('127.0.0.1') && isValid(url)) continue
        const { stdout, stderr, status } = await runCli(argv, { env })
        expect(status, argv.join(' ')).not.toBe(0)
        shown.set(argv.join(' '), stdout + stderr)
      }
    expect(shown.get('status --url http://ann:MARK@127.0.0.1:1')).toContain('http://***@127.0.0.1:1')
    expectHidden(shown)
  })
})

/** A URL that is written in the config itself, and those of the environment. */
function alertsText(url: string, port: number): string {
  const place = url.replace('http://', '')
  return `
alerts:
  wait: 0s
  receivers:
    - name: chat
      type: webhook
      url: "http://${marks.webhookUser}:x@${place}/${marks.webhookPath}?token=${marks.webhookQuery}"
      secret: "\${env:WEBHOOK_SECRET}"
      headers: { Authorization: "\${env:WEBHOOK_HEADER}" }
    - name: duty
      type: email
      host: 127.0.0.1
      port: ${port}
      security: none
      user: gateway
      password: "\${env:SMTP_PASSWORD}"
      sender: gateway@example.com
      recipients: [duty@example.com]
    - { name: hook, type: command, command: [/bin/false, "${marks.hookArgument}"] }
  heartbeats:
    - { name: monitor, url: "${url}/${marks.monitorPath}", unhealthy_url: "${url}/${marks.monitorPath}/fail", every: 10s }
`
}

function configText(baseUrl: string, proxyUrl: string): string {
  return `
ingest:
  broker:
    listeners:
      - { url: "mqtt://127.0.0.1:0" }
      - { url: "mqtts://127.0.0.1:0", tls: { cert: "\${file:cert.pem}", key: "\${file:key.pem}" } }
    access:
      users: [{ name: alice, password: "\${env:CLIENT_PASSWORD}" }]
      tokens: [{ name: bob, token: "\${env:CLIENT_TOKEN}" }]
    passwords: { refusal_delay: 10ms }
sources:
  - name: trucks
    topic: telemetry/v1/{device}
    map:
      time:      { path: ts, format: ms }
      latitude:  { path: lat }
      longitude: { path: lon }
  - name: phones
    preset: owntracks
    keys: { shared: ["\${env:PHONE_SECRET}"], devices: "\${file:phones.csv}" }
defaults: { carrier: ACME, operator: OP1, asset_type: TRACTOR }
spool: { path: ./spool, max_bytes: 32MiB, min_free_bytes: 1MiB }
delivery:
  base_url: "${baseUrl}"
  credentials: { source: environment }
  batch: { linger: 20ms }
  providers:
    - { name: default }
    - { name: other, base_url: "https://api.example.org", proxy: "${proxyUrl}", proxy_auth: { user: ann, password: "\${env:PROXY_PASSWORD}" } }
ops:
  listen: "127.0.0.1:0"
  stop_deadline: 5s
  users: [{ name: ann, password_hash: "\${file:ops-users}", rights: [read, change] }]
log: { level: trace }
`
}
