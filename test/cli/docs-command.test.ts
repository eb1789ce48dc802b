import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { runCli } from '../support/cli-world.ts'

async function project(readme?: string) {
  const folder = await mkdtemp(join(tmpdir(), 'docs-'))
  await mkdir(join(folder, 'config'))
  if (readme !== undefined) await writeFile(join(folder, 'README.md'), readme)
  return {
    folder,
    read: (name: string) => readFile(join(folder, name), 'utf8'),
    docs: (...more: string[]) => runCli(['docs', '--folder', folder, ...more]),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true }),
  }
}

describe('docs', () => {
  test('writes the generated parts, and a check then passes', async () => {
    await using world = await project('# x\n<!-- generated: codes -->\nold\n<!-- end -->\nkept\n')
    expect((await world.docs('--check')).status).toBe(1)
    expect((await world.docs()).status).toBe(0)
    expect(await world.docs('--check')).toEqual({ status: 0, stdout: '', stderr: '' })
    expect(await world.read('config/reference.md')).toContain('`delivery.base_url`')
    expect(JSON.parse(await world.read('config/gateway.schema.json'))).toHaveProperty('properties.delivery')
    const readme = await world.read('README.md')
    expect(readme).toContain('| `SPOOL_LOCKED` | ')
    expect(readme).not.toContain('old')
    expect(readme).toMatch(/^# x\n[\s\S]*kept\n$/)
  })

  test('names the stale parts', async () => {
    await using world = await project('<!-- generated: metrics -->\n<!-- end -->\n')
    await world.docs()
    await writeFile(join(world.folder, 'config/reference.md'), 'edited by hand')
    const { status, stdout } = await world.docs('--check')
    expect([status, stdout]).toEqual([1, 'config/reference.md is stale: run npm run docs\n'])
    expect(await world.read('config/reference.md')).toBe('edited by hand')
  })

  test('does not create a missing README', async () => {
    await using world = await project()
    await world.docs()
    await expect(world.read('README.md')).rejects.toThrow('ENOENT')
  })
})
