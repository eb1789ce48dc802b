// The hint at the likely cause of an error in the syntax of a config.

import { readdir, readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { parseYamlSource } from '../../src/config/yaml-source.ts'

const before = 'ingest:\n  broker:\n    access: { anonymous: true }\n'

test.each<[string, string, RegExp]>([
  [
    'a missing space after a colon',
    'delivery:\n  base_url:http://x\n  timeout: 5s\n',
    /space after the colon/,
  ],
  [
    'a missing space in a flow of keys',
    'spool:\n  path:./spool\n  max_bytes: 1GiB\n',
    /space after the colon/,
  ],
  ['a missing colon', 'delivery:\n  timeout: 5s\n  base_url\n  mode: batch\n', /needs a colon/],
  ['a tab', 'spool:\n\tpath: x\n', /tab/],
  ['an open double quote', 'spool:\n  path: "x\nops:\n  listen: y\n', /quote is opened, probably in line 5/],
  ['an open single quote', "spool:\n  path: 'x\nops:\n  listen: y\n", /quote is opened, probably in line 5/],
  ['an open bracket', 'spool: { path: x\nops: { listen: y }\n', /not closed|bracket|quotes|"\}"/],
  ['an open list', 'sources: [a, b\nops: { listen: y }\n', /not closed|"\]"/],
  [
    'a value that begins with a brace',
    'sources:\n  - topic: {device}/x\n',
    /begins with "\{" or "\[" in quotes/,
  ],
  ['a value that begins with @', 'spool:\n  path: @x\n', /begins with "@".*in quotes/],
  ['a value that begins with a star', 'spool:\n  path: *a *b\n', /begins with "\*".*in quotes/],
  ['a value with a colon and a blank', 'spool:\n  path: a: b\n', /contains ": " in quotes/],
  ['a backslash in double quotes', 'spool:\n  path: "C:\\data"\n', /single quotes/],
  ['wrong indentation', 'delivery:\n  mode: batch\n   timeout: 5s\n', /[Ii]ndent|": "/],
  ['less indentation in a list', 'sources:\n    - name: a\n      topic: x\n   - name: b\n', /[Ii]ndent/],
  ['a mark of a merge conflict', 'spool:\n<<<<<<< HEAD\n  path: x\n', /merge conflict/],
  ['one brace too many', 'spool: { path: x }}\n', /too many|not closed|quotes/],
])('%s', (_, text, hint) => {
  const { sound, problems } = parseYamlSource(before + text)
  expect(sound).toBe(false)
  expect(problems.map(({ message }) => message).join('\n')).toMatch(hint)
})

test('of broken YAML only the first error is reported, where the quote is opened', async () => {
  const folder = new URL('../../config/examples/', import.meta.url)
  const names = (await readdir(folder)).filter((name) => /^[^.]+\.yaml$/.test(name))
  let broken = 0
  for (const name of names) {
    const text = await readFile(new URL(name, folder), 'utf8')
    for (const { index } of text.matchAll(/["']/g)) {
      const { sound, problems } = parseYamlSource(text.slice(0, index) + text.slice(index + 1))
      if (sound) continue
      broken += 1
      expect(problems.map(({ message }) => message)).toHaveLength(1)
      const removed = text.slice(0, index).split('\n').length
      const place = /probably in line (\d+)/.exec(problems[0]?.message ?? '')?.[1] ?? problems[0]?.line
      expect([removed, removed + 1], `${name}:${removed} ${JSON.stringify(problems)}`).toContain(
        Number(place),
      )
    }
  }
  expect(broken).toBeGreaterThan(5)
})

test('a list of keys in braces that is not indented is one error, and not one of each line below', () => {
  const text = `sources:\n  - fields: {\n    card: { path: card }, a.b: { path: b } }\n${'    x: 1\n'.repeat(20)}`
  const { problems } = parseYamlSource(before + text)
  expect(problems).toEqual([
    expect.objectContaining({
      message: expect.stringContaining('is not closed, or its lines are not indented'),
    }),
  ])
})

test('a valid config has no problem', () => {
  expect(parseYamlSource(`${before}ops: { listen: "127.0.0.1:1" }\n`).problems).toEqual([])
})
