// Every relative link in the documentation leads to a file, and its anchor to a heading of that file.

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '../..')
const pages = ['.', 'docs', 'docs/decisions', 'src', 'config']
  .map((folder) => join(root, folder))
  .filter((folder) => existsSync(folder))
  .flatMap((folder) =>
    readdirSync(folder)
      .filter((name) => name.endsWith('.md'))
      .map((name) => join(folder, name)),
  )

/** The anchor that GitHub gives to a heading. */
function anchorOf(heading: string): string {
  const words = heading.replaceAll(/[`*]|\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase()
  return words
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(/\s/g, '-')
}

const withoutCode = (text: string) =>
  text.replaceAll(/^```[\s\S]*?^```$/gm, '').replaceAll(/`[^`\n]*`/g, '``')

function anchorsIn(file: string): Set<string> {
  const text = readFileSync(file, 'utf8').replaceAll(/^```[\s\S]*?^```$/gm, '')
  return new Set([...text.matchAll(/^#+ (.*)$/gm)].map((match) => anchorOf(match[1] ?? '')))
}

function brokenLinksOf(page: string, text: string): string[] {
  return [...withoutCode(text).matchAll(/\]\(([^)\s]+)\)/g)].flatMap((match) => {
    const [path = '', anchor] = (match[1] ?? '').split('#', 2)
    if (/^[a-z]+:/.test(path)) return []
    const target = path === '' ? page : resolve(dirname(page), path)
    const where = `${relative(root, page)} links to ${match[1]}`
    if (!existsSync(target)) return [`${where}: no such file`]
    if (anchor !== undefined && !anchorsIn(target).has(anchor)) return [`${where}: no such heading`]
    return []
  })
}

describe('the links of the documentation', () => {
  test.each(pages.map((page) => [relative(root, page), page]))(
    'of %s have existing targets',
    (_name, page) => {
      expect(brokenLinksOf(page, readFileSync(page, 'utf8'))).toEqual([])
    },
  )

  test('are reported if a file or a heading is missing', () => {
    const page = join(root, 'README.md')
    const text = '[a](docs/no-such-page.md) [b](#no-such-heading) [c](https://example.com) `[d](x)`'
    expect(brokenLinksOf(page, text)).toEqual([
      'README.md links to docs/no-such-page.md: no such file',
      'README.md links to #no-such-heading: no such heading',
    ])
  })

  test('every page of docs/ says who it is for, and the README links to it', () => {
    const readme = readFileSync(join(root, 'README.md'), 'utf8')
    for (const page of pages.filter((file) => dirname(file) === join(root, 'docs'))) {
      expect(readme).toContain(`(docs/${relative(join(root, 'docs'), page)})`)
      expect(readFileSync(page, 'utf8'), page).toMatch(/^# .*\n\nFor /)
    }
  })

  test('the README has at most 200 lines', () => {
    expect(readFileSync(join(root, 'README.md'), 'utf8').split('\n').length).toBeLessThanOrEqual(200)
  })
})
