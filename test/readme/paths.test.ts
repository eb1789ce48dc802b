// The documents of the top folder name files, folders and scripts that exist. links.test.ts checks their links.

import { execFileSync } from 'node:child_process'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '../..')
const documents = [
  'README.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'UPGRADING.md',
  'src/README.md',
]
const textOf = (document: string) => readFileSync(join(root, document), 'utf8')

/** Paths in code spans: `src/cli/NAME-command.ts` means that some such file exists. */
function pathsIn(text: string): string[] {
  const spans = [...text.matchAll(/`([^`\n]+)`/g)].map(([, span = '']) => span)
  const roots = /^(src|test|config|systemd|docs|\.ci)\/[\w./-]*$|^[A-Z]+\.md$|^package(-lock)?\.json$/
  return spans.flatMap((span) => span.split(' ')).filter((word) => roots.test(word))
}

const exists = (path: string) =>
  path.includes('NAME')
    ? globSync(path.replaceAll('NAME', '*'), { cwd: root }).length > 0
    : existsSync(join(root, path))

describe.each(documents)('%s', (document) => {
  test('names files and folders that exist', () => {
    expect(pathsIn(textOf(document)).filter((path) => !exists(path))).toEqual([])
  })

  test('names npm scripts that exist', () => {
    const { scripts } = JSON.parse(textOf('package.json')) as { scripts: Record<string, string> }
    const named = [...textOf(document).matchAll(/npm run (?:-s )?([a-z:]+)/g)].map(([, name = '']) => name)
    expect(named.filter((name) => !Object.hasOwn(scripts, name))).toEqual([])
  })
})

test('a path that does not exist would be found', () => {
  expect(pathsIn('Write `src/cli/NAME-command.ts` or `npx vitest run test/nowhere`.')).toEqual([
    'src/cli/NAME-command.ts',
    'test/nowhere',
  ])
  expect(exists('src/cli/NAME-command.ts')).toBe(true)
  expect(exists('src/cli/NAME-nowhere.ts')).toBe(false)
  expect(exists('test/nowhere')).toBe(false)
})

test('the spools of the examples are in folders that git ignores', () => {
  const examples = globSync('config/examples/*.yaml', { cwd: root })
  const spools = examples.flatMap((example) => {
    const [, path] = /^spool: \{ path: (\.[\w./-]+)/m.exec(textOf(example)) ?? []
    return path === undefined ? [] : [join(dirname(example), path, 'x')]
  })
  expect(spools.length).toBeGreaterThan(3)
  const ignored = execFileSync('git', ['check-ignore', '--no-index', ...spools], {
    cwd: root,
    encoding: 'utf8',
  })
  expect(ignored.trim().split('\n')).toEqual(spools)
})
