// The index of the decisions in src/README.md and the files in docs/decisions agree.

import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '../..')
const folder = join(root, 'docs/decisions')
const files = readdirSync(folder).sort()
const parts = ['## Decision', '## Reason', '## What would change our mind']

describe('the decisions', () => {
  test('are numbered without a gap', () => {
    expect(files.length).toBeGreaterThan(20)
    for (const [index, file] of files.entries())
      expect(file).toMatch(new RegExp(`^${String(index + 1).padStart(4, '0')}-[a-z0-9-]+\\.md$`))
  })

  test('have a title with their number, a date, and what was decided, why, and what would change it', () => {
    for (const [index, file] of files.entries()) {
      const lines = readFileSync(join(folder, file), 'utf8').split('\n')
      expect(lines[0], file).toMatch(new RegExp(`^# ${index + 1}\\. \\S`))
      expect(lines[2], file).toMatch(/^Date: 20\d\d-\d\d-\d\d$/)
      const headings = lines.filter((line) => line.startsWith('## '))
      expect(headings, file).toEqual(parts)
      for (const heading of headings)
        expect(lines[lines.indexOf(heading) + 2], `${file}: ${heading}`).toMatch(/\S/)
    }
  })

  test('are all in the index of src/README.md, in their order and with their titles', () => {
    const readme = readFileSync(join(root, 'src/README.md'), 'utf8')
    const index = [...readme.matchAll(/^(\d+\. )\[(.+)\]\(\.\.\/docs\/decisions\/(.+)\)$/gm)]
    const found = index.map(([, number = '', title = '', file = '']) => ({
      file,
      title: `${number}${title}`,
    }))
    const expected = files.map((file) => ({
      file,
      title: readFileSync(join(folder, file), 'utf8').split('\n')[0]?.replace('# ', '') ?? '',
    }))
    expect(found).toEqual(expected)
  })
})
