import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { loadConfig, secretFileWarnings } from '../../src/config/config.ts'
import { runCli } from '../support/cli-world.ts'
import { newFolder } from '../support/folders.ts'

const text = `
ingest: { broker: { listeners: [{ url: "mqtt://127.0.0.1:0" }], access: { users: [{ name: a, password: "\${file:password}" }] } } }
sources: [{ name: a, topic: "a/{device}", map: { time: { path: t, format: ms }, latitude: { path: x }, longitude: { path: y } } }]
defaults: { carrier: "\${file:carrier}", operator: OP1, asset_type: TRACTOR }
delivery: { base_url: "http://127.0.0.1:1", credentials: { source: file, path: keys.json } }
`

async function written() {
  const folder = await newFolder()
  const at = (name: string) => join(folder, name)
  const files = { 'gateway.yaml': text, password: 'hush-hush\n', carrier: 'ACME\n', 'keys.json': '{}' }
  for (const [name, content] of Object.entries(files)) await writeFile(at(name), content)
  await chmod(at('carrier'), 0o644)
  return { at, folder }
}

describe('a file with a secret', () => {
  test('that others can read is a warning of check, which does not show the secret', async () => {
    const { at } = await written()
    await chmod(at('password'), 0o640)
    await chmod(at('keys.json'), 0o604)
    const { status, stdout } = await runCli(['check', '--config', at('gateway.yaml')])
    expect(status).toBe(0)
    expect(stdout).toContain(`The secret in ${at('password')} is open to its group.`)
    expect(stdout).toContain(`The secret in ${at('keys.json')} is open to every user of this machine.`)
    expect(stdout).not.toContain(at('carrier'))
    expect(stdout).not.toContain('hush')
  })

  test('that only its user can read is none, nor one that systemd passes', async () => {
    const { at, folder } = await written()
    await chmod(at('password'), 0o600)
    await chmod(at('keys.json'), 0o440)
    const { secretFiles } = await loadConfig(at('gateway.yaml'), { env: {} })
    expect(secretFiles).toEqual([at('password'), at('keys.json')])
    expect(await secretFileWarnings(secretFiles, {})).toMatchObject([
      { what: expect.stringContaining('keys.json') },
    ])
    expect(await secretFileWarnings(secretFiles, { CREDENTIALS_DIRECTORY: folder })).toEqual([])
  })
})
