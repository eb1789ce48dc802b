// config-check-archive.ts: the config check for preinst, in a tar archive: one file of JavaScript, and the presets that
// it reads beside its package.json. dpkg allows files in a control archive, and no folders.

import { execFileSync } from 'node:child_process'
import { cpSync, globSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { rolldown } from 'rolldown'
import { gzipped } from './package-tree.ts'

/** `date`: of the files, seconds since 1970. */
export async function configCheckArchive(root: string, date: number): Promise<Buffer> {
  const folder = mkdtempSync(join(tmpdir(), 'telemetry-gateway-check-'))
  try {
    const input = join(root, 'config/packaging/config-check.ts')
    const bundle = await rolldown({ input, cwd: root, platform: 'node', logLevel: 'warn' })
    const file = join(folder, 'check.mjs')
    await bundle.write({ file, format: 'esm', minify: true, codeSplitting: false })
    await bundle.close()
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }\n')
    const presets = join(folder, 'config/presets')
    mkdirSync(presets, { recursive: true })
    for (const name of globSync('*.yaml', { cwd: join(root, 'config/presets') }))
      cpSync(join(root, 'config/presets', name), join(presets, name))
    const metadata = ['--sort=name', `--mtime=@${date}`, '--owner=0', '--group=0', '--numeric-owner']
    const args = [...metadata, '--mode=u=rwX,go=rX', '--format=ustar', '-C', folder, '-cf', '-', '.']
    return gzipped(execFileSync('tar', args, { maxBuffer: 64 * 1024 ** 2 }))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
