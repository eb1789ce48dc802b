// The program with which preinst checks the config: one file, on its own, as the control archive of the package has it.

import { execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { configCheckArchive } from '../../config/packaging/config-check-archive.ts'
import { newFolder } from '../support/folders.ts'
import { root } from '../system/installation.ts'

test('the config check of the package runs without the packages of the product', async () => {
  const folder = await newFolder()
  execFileSync('tar', ['-xz', '-C', folder], { input: await configCheckArchive(root, 0) })
  const check = async (base: string) => {
    const config = join(folder, 'gateway.yaml')
    const text = `
sources: [{ name: phones, preset: owntracks }]
ingest: { broker: { access: { anonymous: true } } }
delivery: { base_url: ${base} }
spool: { path: /var/lib/gateway }
`
    await writeFile(config, text)
    return execFileSync(process.execPath, [join(folder, 'check.mjs'), '--config', config], {
      encoding: 'utf8',
    })
  }
  expect(await check('https://ingest.example.com')).toBe('valid\n')
  expect(await check('7')).toMatch(/^CONFIG_INVALID\n[^]*delivery\.base_url/)
}, 60_000)
