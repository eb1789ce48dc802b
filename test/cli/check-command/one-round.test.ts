// `check` reports in one run what is wrong in all parts of a config that do not depend on each other.

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createAuthority } from '../../support/certificates.ts'
import { runCli } from '../../support/cli-world.ts'

type Problem = { file?: string; line: number; column: number; path: string; message: string }

async function check(config: string, files: Record<string, string> = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'one-round-'))
  try {
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text)
    const path = join(folder, 'gateway.yaml')
    await writeFile(path, config)
    const text = await runCli(['check', '--config', path])
    const json = await runCli(['check', '--json', '--config', path])
    const { error } = JSON.parse(json.stderr || json.stdout || '{}') as { error?: { problems?: Problem[] } }
    const shown = (text.stderr + text.stdout).replaceAll(folder, '')
    return { status: text.status, text: shown, problems: error?.problems ?? [] }
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** The lines of the config that have a problem. */
async function linesWith(config: string, files?: Record<string, string>): Promise<string[]> {
  const { problems } = await check(config, files)
  return problems.map(({ file, line, message }) => `${file?.split('/').at(-1) ?? ''}${line} ${message}`)
}

const source = (name: string, more = '') =>
  `  - { name: ${name}, topic: "t/${name}/{device}", map: { latitude: { path: lat }, longitude: { path: lon } }${more} }`

describe('check', () => {
  test('finds wrong values, wrong names, missing files, bad rows and rules across options in one run', async () => {
    const found = await linesWith(
      `ingest:
  broker:
    access: { password_file: missing-users }
    listeners:
      - { url: "http://127.0.0.1:1" }
      - { url: "mqtt://127.0.0.1:1883", access: { password_file: other-users } }
      - { url: "mqtts://127.0.0.1:8883" }
sources:
${source('a', ', provider: nort')}
${source('b', ', provider: south, retained: maybe')}
  - { name: c, topic: "t/c/#/{device}", provider: north, map: { latitude: { path: lat }, longitude: { path: "lon[" } } }
${source('d', ', provider: north, from: [depoo]')}
devices: { file: devices.csv, unknown: quarantin }
delivery:
  base_url: http://127.0.0.1:8081/v2
  timeout: long
  credentials: { source: file, path: missing-keys.json }
  max_in_flight_total: 1
  providers: [{ name: north }, { name: south, max_in_flight: 0 }]
ops: { listen: "0.0.0.0:9000", users: [{ name: bob, password_hash: "\${env:HASH}", rights: [] }] }
log: { level: loud }
`,
      { 'devices.csv': 'device,provider\nt1,eats\n' },
    )
    expect(found.map((line) => line.replace(/ .*/s, '')).join(' ')).toBe(
      '3 5 6 7 9 10 11 12 13 15 16 17 18 19 20 20 20 21 devices.csv2',
    )
    expect(found).toContainEqual(expect.stringContaining('listeners[1].access.password_file names a file'))
    expect(found).toContainEqual(expect.stringContaining('max_in_flight_total must be at least 2'))
  })

  test('refuses the text of a file where its path is meant, and never shows that text', async () => {
    const found = await linesWith(
      `ingest: { broker: { access: { password_file: "\${file:key}" } } }
sources:
${source('a')}
devices: { file: "\${file:key}" }
spool: { path: "\${file:key}" }
delivery: { base_url: "http://h", credentials: { source: file, path: "\${file:key}" } }
ops: { control_socket: "\${file:key}" }
`,
      { key: `one line\nSECRET${'S'.repeat(300)}\n` },
    )
    expect(found.map((line) => line.replace(/ .*/s, '')).join(' ')).toBe('1 4 5 6 7')
    for (const line of found) expect(line).toMatch(/"\$\{file:key\}" puts the text.*Write the path alone/)
    expect(found.join('\n')).not.toContain('SECRET')
  })

  test.each([
    [
      'an option that another one needs',
      'delivery: { base_url: "http://h", proxy: 7, proxy_auth: { user: u, password: "${file:pw}" } }',
      1,
    ],
    [
      'a list that others are named in',
      'delivery: { base_url: "http://h", providers: [{ name: "a b" }] }',
      1,
    ],
    ['a part that is required', 'delivery: { base_url: 7 }', 1],
    ['a section that is required', 'delivery: 7', 1],
    [
      'two entries of one list',
      'delivery: { base_url: "http://h" }\nops: { users: [{ name: 7 }, { name: a, rights: all }] }',
      5,
    ],
  ])('reports nothing that only follows from %s', async (_what, section, count) => {
    const found = await linesWith(
      `ingest: { broker: { access: { anonymous: true } } }
sources:
${source('a')}
${section}
`,
      { pw: 'x' },
    )
    expect(found).toHaveLength(count)
  })

  test('keeps to the syntax where the file has none', async () => {
    expect(await linesWith('ingest: {\nsources: 7\n')).toHaveLength(1)
  })
})

const valid = (
  rest: string,
  sources = source('a'),
) => `ingest: { broker: { access: { password_file: users }, listeners: [{ url: "mqtts://0.0.0.0:8883", tls: { cert: cert.pem, key: my.key } }] } }
sources:
${sources}
ops: { listen: "0.0.0.0:9443", tls: { cert: cert.pem, key: my.key } }
${rest}
`

describe('a name that is wrong in many places', () => {
  test('is one line with all its places, and what was probably meant', async () => {
    const sources = Array.from({ length: 13 }, (_, index) => source(`s${index}`, ', provider: nrth')).join(
      '\n',
    )
    const { text, problems } = await check(
      `ingest: { broker: { access: { anonymous: true } } }
sources:
${sources}
devices: { file: devices.csv }
delivery: { base_url: "http://h", providers: [{ name: north, provider_key: a }, { name: south, provider_key: b }] }
`,
      { 'devices.csv': `device,provider\n${['a', 'b', 'c', 'd'].map((name) => `${name},soth\n`).join('')}` },
    )
    expect(problems).toHaveLength(17)
    expect(text.split('\n').filter((line) => line.includes('nrth'))).toEqual([
      expect.stringMatching(
        /:3:\d+ .*found "nrth"\. Did you mean "north"\? \(13 times; also in the lines 4, 5, .*, 15\)/,
      ),
    ])
    expect(text.split('\n').filter((line) => line.includes('soth'))).toEqual([
      expect.stringMatching(/csv:2 .*Did you mean "south"\? \(4 times; also in the lines 3, 4, 5\)/),
    ])
  })
})

describe('a valid config', () => {
  const own = createAuthority().issue({ names: ['gw.example.org'] })
  const files = {
    'cert.pem': own.cert,
    'my.key': own.key,
    users: '# nobody\n',
    'devices.csv': 'device,asset_id\n',
  }

  test('has addresses with https and a name of the certificate where it listens on all', async () => {
    const { text } = await check(valid('delivery: { base_url: "http://h" }'), files)
    expect(text).toContain(
      'https://0.0.0.0:9443, all addresses; clients use a name in its certificate, such as https://gw.example.org:9443',
    )
    expect(text).toContain('such as mqtts://gw.example.org:8883')
    expect(text).not.toContain('://127.0.0.1')
  })

  test('is warned of a users file and a device table without an entry', async () => {
    const { text, status } = await check(
      valid('delivery: { base_url: "http://h" }\ndevices: { file: devices.csv, unknown: quarantine }'),
      files,
    )
    expect(status).toBe(0)
    expect(text).toContain('access.password_file has no user')
    expect(text).toContain('every message is kept in quarantine, nothing is delivered')
    const accepted = await check(valid('delivery: { base_url: "http://h" }'), {
      ...files,
      users: 'bob:$scrypt$ln=4,r=8,p=1$AAAA$AAAA\n',
    })
    expect(accepted.text).not.toContain('nothing is delivered')
  })

  test('is warned of each quantity whose unit is only assumed, with that unit', async () => {
    const map = (speed: string, odometer: string) => `  - name: a
    topic: "t/{device}"
    map:
      latitude: { path: lat }
      longitude: { path: lon }
      speed: { path: v${speed} }
      signals:
        - { type: OBD_LIFETIME_ODOMETER, path: odo${odometer} }
        - { type: OBD_TOTAL_ENGINE_TIME, path: h${odometer.replace('km', 'h')} }
        - { type: CARGO, path: c, quantity: temperature${odometer === '' ? '' : ', value_unit: CELSIUS'} }`
    const bare = await check(valid('delivery: { base_url: "http://h" }', map('', '')), files)
    expect(bare.text).toContain('maps speed without `unit`. It is sent as it is, as km/h')
    expect(bare.text).toContain('maps OBD_LIFETIME_ODOMETER without `unit`. It is sent as it is, as km')
    expect(bare.text).toContain('maps OBD_TOTAL_ENGINE_TIME without `unit`. It is sent as it is, as h')
    expect(bare.text).toContain('maps CARGO without `value_unit`')
    const stated = await check(
      valid('delivery: { base_url: "http://h" }', map(', unit: mph', ', unit: km')),
      files,
    )
    expect(stated.text).not.toContain('without `')
  })
})

describe('a wrong word', () => {
  test.each([
    ['ops: { users: [{ name: a, password_hash: "${file:users}", rights: read }] }', 'Did you mean [read]?'],
    ['ops: { silence: { quiet_hours: 22-6 } }', 'two times such as 22:00-06:00'],
    ['ops: { silence: { quiet_hours: [1] } }', 'text of the form HH:MM-HH:MM such as 22:00-06:00'],
    ['ops: { silence: { quiet_days: sat } }', 'such as [sunday, monday]'],
    ['ops: { silence: { after: soon } }', 'a duration such as'],
    ['ops: { listen: "8080" }', 'HOST:PORT'],
    ['ops: { stop_deadline: 2h }', '1 s to 10 min, found 2 h'],
    ['spool: { max_bytes: 1KiB }', 'MiB'],
    ['privacy: { profiles: { night: { hours: "9-5" } } }', 'Mon-Fri 06:00-18:00'],
    [
      'alerts: { receivers: [{ name: a, type: email, host: h, sender: a@b.c, recipients: a@b.c }] }',
      'Did you mean ["a@b.c"]?',
    ],
  ])('%s is answered with the form that is allowed', async (section, sentence) => {
    const { text } = await check(
      `ingest: { broker: { access: { anonymous: true } } }
sources:
${source('a')}
delivery: { base_url: "http://h" }
${section}
`,
      { users: '' },
    )
    expect(text).toContain(sentence)
    expect(text).not.toMatch(/Invalid input|expected string|\^\[|\(\?/)
  })

  test.each([
    ['https://h.example/v2', 'https://h.example'],
    ['https://h.example/v2/', 'https://h.example'],
    ['https://h.example/fleet/v2/telemetry/batch', 'https://h.example/fleet'],
    ['https://user:p%w@h.example/v2?x=1#y', 'https://h.example'],
  ])('the base_url %s is answered with %s', async (url, better) => {
    const { text } = await check(`ingest: { broker: { access: { anonymous: true } } }
sources:
${source('a')}
delivery: { base_url: "${url}" }
`)
    expect(text).toContain(`write "${better}"`)
    expect(text).not.toContain('pw@')
  })
})
