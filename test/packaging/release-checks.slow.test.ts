// What `npm run release` refuses, the SBOM, and the licence texts. test/system packs and installs what it makes.

import { execFileSync } from 'node:child_process'
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { releaseProblems } from '../../config/packaging/release-checks.ts'
import { sbomText } from '../../config/packaging/sbom.ts'
import { thirdPartyNotices } from '../../config/packaging/third-party-notices.ts'
import { newFolder } from '../support/folders.ts'

const root = resolve(import.meta.dirname, '../..')
const environment = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !name.startsWith('GIT_')),
)

async function newCheckout(version: string, changelog: string) {
  const folder = await newFolder()
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.com', ...args], {
      cwd: folder,
      env: { ...environment, GIT_CONFIG_GLOBAL: '/dev/null' },
      encoding: 'utf8',
    })
  for (const name of ['package.json', 'package-lock.json'])
    await writeFile(join(folder, name), JSON.stringify({ version }))
  await writeFile(join(folder, 'CHANGELOG.md'), changelog)
  git('init', '-q')
  git('add', '.')
  git('commit', '-q', '-m', 'first')
  return { folder, git }
}

const asRelease = { isDev: false, withTag: false }

describe('a release', () => {
  test('is made of a clean commit with a version and its entry in the changelog', async () => {
    const { folder, git } = await newCheckout('0.2.0', '# Changelog\n\n## 0.2.0\n')
    expect(releaseProblems(folder, asRelease)).toEqual([])
    git('tag', 'v0.2.0')
    expect(releaseProblems(folder, { isDev: false, withTag: true })).toEqual([])
  })

  test('of a development version needs --dev, and gets no tag', async () => {
    const { folder } = await newCheckout('0.2.0-dev', '## 0.2.0, not released\n')
    expect(releaseProblems(folder, asRelease)).toEqual([expect.stringContaining('give --dev')])
    expect(releaseProblems(folder, { isDev: true, withTag: false })).toEqual([])
    expect(releaseProblems(folder, { isDev: true, withTag: true })).toEqual([
      expect.stringContaining('no tag'),
    ])
  })

  test('names all problems at once', async () => {
    const { folder, git } = await newCheckout('0.2.0', '## 0.2.01\n\n## 0.1.0\n')
    git('tag', 'v0.2.0')
    git('commit', '-q', '--allow-empty', '-m', 'second')
    await writeFile(join(folder, 'package-lock.json'), '{ "version": "0.1.0" }')
    await writeFile(join(folder, 'notes.txt'), 'of a person')
    expect(releaseProblems(folder, asRelease)).toEqual([
      expect.stringContaining('package-lock.json does not say 0.2.0'),
      expect.stringContaining('no heading "## 0.2.0"'),
      expect.stringMatching(/differs from its commit:[^]*notes\.txt/),
      expect.stringContaining('The tag v0.2.0 is at another commit'),
    ])
  })

  test('needs a clone with all commits', async () => {
    const { folder, git } = await newCheckout('0.2.0-dev', '## 0.2.0\n')
    git('commit', '-q', '--allow-empty', '-m', 'second')
    const shallow = await newFolder()
    execFileSync('git', ['clone', '-q', '--depth', '1', `file://${folder}`, shallow], { env: environment })
    expect(releaseProblems(shallow, { isDev: true, withTag: false })).toEqual([
      expect.stringContaining('use a clone with all commits'),
    ])
  })
})

describe('the SBOM', () => {
  test('has the same bytes in each folder and at each time, the name of the build, and no address of a registry', async () => {
    const texts = []
    for (let n = 0; n < 2; n++) {
      const folder = await newFolder()
      for (const name of ['package.json', 'package-lock.json', '.npmrc'])
        await cp(join(root, name), join(folder, name))
      texts.push(sbomText(folder, { version: '0.2.0-dev.7.gabcdefabcdef', date: 1_790_000_000 }))
    }
    expect(texts[0]).toBe(texts[1])
    const { metadata, components } = JSON.parse(texts[0] ?? '') as {
      metadata: { timestamp: string; component: object }
      components: { name: string; version: string }[]
    }
    expect(metadata).toMatchObject({
      timestamp: '2026-09-21T14:13:20.000Z',
      component: { name: 'telemetry-gateway', version: '0.2.0-dev.7.gabcdefabcdef' },
    })
    const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as Record<
      'dependencies' | 'optionalDependencies',
      Record<string, string>
    >
    const shipped = Object.entries({ ...manifest.dependencies, ...manifest.optionalDependencies })
    const listed = new Set(components.map(({ name, version }) => `${name} ${version}`))
    expect(shipped.map(([name, version]) => `${name} ${version}`).filter((one) => !listed.has(one))).toEqual(
      [],
    )
    expect(listed.has('vitest 5.1.0')).toBe(false)
    expect(texts[0]).not.toMatch(/https?:\/\/(?!cyclonedx\.org)/)
  })
})

describe('the third-party notices', () => {
  const withPackages = async (files: Record<string, string>) => {
    const modules = join(await newFolder(), 'node_modules')
    for (const [path, text] of Object.entries(files)) {
      await mkdir(join(modules, dirname(path)), { recursive: true })
      await writeFile(join(modules, path), text)
    }
    return thirdPartyNotices(modules, root)
  }
  const manifest = (name: string, license: string, author?: string) =>
    JSON.stringify({ name, version: '1.0.0', license, author })

  test('have each text once, with the packages that have it, also of packages in packages and of compiled sources', async () => {
    const text = await withPackages({
      'a/package.json': manifest('a', 'MIT'),
      'a/LICENSE': 'the text of a',
      'a/deps/level/COPYING': 'the text of level',
      'a/node_modules/@c/d/package.json': manifest('@c/d', 'ISC'),
      'a/node_modules/@c/d/license.md': 'the text of a\r\n',
      'a/lib/package.json': '{ "type": "module" }',
    })
    expect(text.match(/the text of a$/gm)).toHaveLength(1)
    expect(text).toContain('@c/d 1.0.0 (ISC)\na 1.0.0 (MIT)\n')
    expect(text).toMatch(/a 1\.0\.0 \(MIT\): deps\/level\/COPYING\n\n {2}the text of level/)
  })

  test('have the standard text for a package without one, with its author', async () => {
    const text = await withPackages({
      'b/package.json': manifest('b', 'MIT', 'A. Writer <a@example.com>'),
      'c/package.json': manifest('c', 'Apache-2.0', 'C. Writer'),
      'c/NOTICE': 'a notice',
    })
    expect(text).toMatch(/b 1\.0\.0 \(MIT\)[^]*Copyright \(c\) A\. Writer[^]*WITHOUT WARRANTY OF ANY KIND/)
    expect(text).toMatch(/c 1\.0\.0 \(Apache-2\.0\)[^]*Copyright C\. Writer[^]*TERMS AND CONDITIONS/)
    expect(text).toContain('a notice')
  })

  test('cannot be made where no text of a licence is known', async () => {
    await expect(withPackages({ 'b/package.json': manifest('b', 'BSD-3-Clause') })).rejects.toThrow(
      'b has no licence text',
    )
  })
})
