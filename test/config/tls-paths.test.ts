// Certificates, keys and authorities of TLS may be given as the path of a file, in every section that has some.

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ConfigError, loadConfig } from '../../src/config/config.ts'
import { createAuthority } from '../support/certificates.ts'

const authority = createAuthority()
const own = authority.issue()
const files = {
  'ca.pem': authority.ca,
  'cert.pem': `${own.cert}\n`,
  'my.key': own.key,
  'crl.pem': authority.revoke([]),
  'ca.der': '\ufffd\ufffd0\u0082',
  'empty.pem': '',
  users: 'truck-7:x\n',
}

/** Every place of the config that has TLS. `cert`, `key` and `ca` as they are written there. */
const everywhere = ({ cert, key, ca, crl }: Record<'cert' | 'key' | 'ca' | 'crl', string>) => `
ingest:
  broker:
    access: { certificates: true }
    listeners:
      - { url: "mqtts://127.0.0.1:8883", tls: { cert: ${cert}, key: ${key}, client_ca: ${ca}, client_crl: ${crl} } }
  bridges:
    - { name: m, url: "mqtts://h", topics: [t], client_id: c, tls: { ca: ${ca}, cert: ${cert}, key: ${key} } }
    - { name: n, url: "nats+tls://h", topics: ['t/{device}'], durables: { prefix: g, partitions: 1 }, tls: { ca: ${ca} } }
    - { name: r, url: "amqps://h", queue: { prefix: g, partitions: 1 }, bind: { exchange: amq.topic, keys: ['t.*'] }, tls: { ca: ${ca} } }
sources:
  - { name: a, topic: "t/{device}", map: { latitude: { path: lat }, longitude: { path: lon } } }
delivery:
  base_url: https://h.example
  tls: { ca: ${ca}, cert: ${cert}, key: ${key} }
  providers: [{ name: p, tls: { ca: ${ca}, cert: ${cert}, key: ${key} } }]
ops: { tls: { cert: ${cert}, key: ${key} } }
alerts:
  receivers:
    - { name: w, type: webhook, url: "\${env:URL}", ca: ${ca} }
    - { name: e, type: email, host: h, sender: a@b.c, recipients: [a@b.c], ca: ${ca} }
  heartbeats: [{ name: h, url: "\${env:URL}", ca: ${ca} }]
`

async function load(text: string, env: Record<string, string> = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'tls-paths-'))
  try {
    for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content)
    const path = join(folder, 'c.yaml')
    await writeFile(path, text)
    const loaded = await loadConfig(path, { env: { URL: 'https://h.example/x', ...env } }).catch(
      (error: unknown) => {
        if (error instanceof ConfigError) return error
        throw error
      },
    )
    return { loaded, folder }
  } finally {
    await rm(folder, { recursive: true })
  }
}

async function problemsOf(text: string, env: Record<string, string> = {}): Promise<string[]> {
  const { loaded } = await load(text, env)
  if (!(loaded instanceof ConfigError)) throw new Error('the config is valid')
  return loaded.problems.map(({ line, column, message }) => `${line}:${column} ${message}`)
}

const byPath = { cert: 'cert.pem', key: 'my.key', ca: 'ca.pem', crl: 'crl.pem' }

describe('certificates, keys and authorities of TLS', () => {
  test('are read from a path in every section, as from ${file:}', async () => {
    const written = (way: (name: string) => string) =>
      everywhere({
        cert: way('cert.pem'),
        key: way('my.key'),
        ca: way('ca.pem'),
        crl: way('crl.pem'),
      })
    const { loaded: paths, folder } = await load(written((name) => name))
    const { loaded: files } = await load(written((name) => `"\${file:${name}}"`))
    if (paths instanceof ConfigError || files instanceof ConfigError) throw new Error('not valid')
    expect(paths.config.alerts).toEqual(files.config.alerts)
    expect(paths.config.ingest).toEqual(files.config.ingest)
    expect(paths.config.delivery).toEqual(files.config.delivery)
    expect(paths.config.ops.tls?.key.reveal()).toBe(own.key.replace(/\n$/, ''))
    // Other users of the machine may be able to read it.
    expect(paths.secretFiles).toContain(join(folder, 'my.key'))
  })

  test('may have parts of the path from the environment', async () => {
    const text = everywhere({ ...byPath, cert: '"${env:DIR}/cert.pem"', key: '"${env:KEY}"' })
    const { loaded } = await load(text, { DIR: '.', KEY: 'my.key' })
    expect(loaded).not.toBeInstanceOf(ConfigError)
  })

  test('of a wrong path are one problem for each place, with its line and column', async () => {
    const problems = await problemsOf(everywhere({ ...byPath, cert: 'other.pem' }))
    expect(problems).toEqual([
      '6:55 "other.pem": the file cannot be read (ENOENT: there is no such file).',
      expect.stringMatching(/^8:\d+ "other.pem": the file cannot be read/),
      expect.stringMatching(/^15:\d+ "other.pem": the file cannot be read/),
      expect.stringMatching(/^16:\d+ "other.pem": the file cannot be read/),
      expect.stringMatching(/^17:\d+ "other.pem": the file cannot be read/),
    ])
  })

  test.each([
    ['users', 'tls.cert must be a certificate as PEM', 'has no line "-----BEGIN CERTIFICATE-----"'],
    ['my.key', 'tls.cert must be a certificate as PEM', 'it is a private key'],
    ['ca.der', 'tls.cert must be a certificate as PEM', 'the file is binary (DER)'],
    ['empty.pem', 'tls.cert must be a certificate as PEM', 'has no line'],
    ['"${env:URL}"', '"${env:URL}": the file cannot be read', 'ENOENT'],
    ['.', '".": the file cannot be read', 'EISDIR: it is a folder'],
  ])('from %s are refused with what they are', async (cert, where, what) => {
    const [first = ''] = await problemsOf(everywhere({ ...byPath, cert }))
    expect(first).toContain(where)
    expect(first).toContain(what)
    expect(first).toMatch(/^6:\d+ /)
  })

  test('never show a key that is pasted in the place of its path', async () => {
    const body = own.key.split('\n').slice(1, -2).join('')
    for (const key of [body, JSON.stringify(own.key)]) {
      const problems = await problemsOf(everywhere({ ...byPath, key }))
      expect(problems.join('\n')).not.toContain(body.slice(0, 20))
      expect(problems[0]).toContain('tls.key must come from the path of a PEM file')
    }
  })

  test('differ from passwords: there a path is refused with the words to write', async () => {
    const text = everywhere(byPath).replace(
      'client_id: c,',
      'client_id: c, username: u, password: /etc/pw-secret,',
    )
    const problems = await problemsOf(text)
    expect(problems).toEqual([expect.stringContaining('For a path write "${file:PATH}"')])
    expect(problems[0]).not.toContain('pw-secret')
  })
})
