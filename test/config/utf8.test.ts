import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { loadConfig } from '../../src/config/config.ts'
import { loadUsers } from '../../src/ingest/broker/access/users.ts'
import { messageOf } from '../../src/std/gateway-error.ts'

async function fileOf(name: string, bytes: Buffer): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'gateway-utf8-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  await writeFile(join(folder, name), bytes)
  return join(folder, name)
}

const problemsOf = (path: string, env: Record<string, string> = {}) =>
  loadConfig(path, { env }).then(
    () => '',
    (error: unknown) => messageOf(error),
  )

describe('a file with text that is not UTF-8 is refused', () => {
  test('a config, with line and column', async () => {
    const path = await fileOf('gateway.yaml', Buffer.from('# Größe\nlog: { level: "ä", x: "Müller" }\n'))
    expect(await problemsOf(path)).not.toContain('UTF-8')
    const latin = Buffer.concat([Buffer.from('# Größe\n# ä M'), Buffer.from([0xfc]), Buffer.from('ller\n')])
    expect(await problemsOf(await fileOf('gateway.yaml', latin))).toContain(
      'gateway.yaml:2:6  The file is not UTF-8 at line 2, column 6: save it as UTF-8.',
    )
  })

  test.each([
    ['with', '\ufeff'],
    ['without', ''],
  ])('a config in UTF-16, %s a byte order mark', async (_what, mark) => {
    const text = Buffer.from(`${mark}log: { level: info }\n`, 'utf16le')
    for (const bytes of [text, Buffer.from(text).swap16()])
      expect(await problemsOf(await fileOf('gateway.yaml', bytes))).toContain(
        'The file is UTF-16: save it as UTF-8.',
      )
  })

  test('not for the byte order mark of UTF-8', async () => {
    const path = await fileOf('gateway.yaml', Buffer.from('\ufefflog: { levle: info }\n'))
    expect(await problemsOf(path)).toContain('gateway.yaml:1:8  unknown option')
  })

  test('one in ${file:}, without a part of its text', async () => {
    const secret = await fileOf('key', Buffer.from('secret-\xe9', 'latin1'))
    const text = `delivery: { base_url: "\${file:${secret}}" }\n`
    const problems = await problemsOf(await fileOf('gateway.yaml', Buffer.from(text)))
    expect(problems).toContain('The file is not UTF-8 at line 1, column 8: save it as UTF-8.')
    expect(problems).not.toContain('secret-')
  })

  test('a certificate in DER is still named as such', async () => {
    const der = await fileOf('ca.der', Buffer.from([0x30, 0x82, 0x01, 0xff]))
    const text = `delivery: { tls: { ca: "${der}" } }\n`
    const problems = await problemsOf(await fileOf('gateway.yaml', Buffer.from(text)))
    expect(problems).toContain('the file is binary (DER)')
    expect(problems).not.toContain('not UTF-8')
  })

  test('an environment variable', async () => {
    const path = await fileOf('gateway.yaml', Buffer.from('delivery: { base_url: "${env:URL}" }\n'))
    expect(await problemsOf(path, { URL: 'M\ufffdller' })).toContain('the environment variable is not UTF-8')
  })

  test('a password file', async () => {
    const passwordFile = await fileOf('passwords', Buffer.from('# a\nM\xfcller:x\n', 'latin1'))
    await expect(loadUsers({ users: [], passwordFile, tokens: [] })).rejects.toMatchObject({
      code: 'PASSWORDS_INVALID',
      why: 'The file is not UTF-8 at line 2, column 2: save it as UTF-8.',
    })
  })
})
