import { describe, expect, test } from 'vitest'
import { placesReadBy } from '../../../src/mapping/jsonata/expression-paths.ts'
import { compileExpressionUnread } from '../../../src/mapping/jsonata/expression-unread.ts'

function placesIn(expression: string): string[] {
  return placesReadBy(expression)
    .map(({ from, keys }) => `${from === 'root' ? '' : '?'}${keys.join('/')}`)
    .sort()
}

describe('what an expression reads', () => {
  test.each([
    ['lat', ['lat']],
    ['a.b[c=1 and $exists(d)].e', ['a/b/c', 'a/b/d', 'a/b/e']],
    ['a[0].b', ['a/b']],
    ['a.(b)', ['a/b']],
    ['a^(>b).c', ['a/b', 'a/c']],
    ['a{k: v}', ['a/k', 'a/v']],
    ['a.*.lat', ['a/*/lat']],
    ['$$.x.y', ['x/y']],
    ['r.{"lat": pos.lat, "s": $number(spd) * 3.6}', ['r/pos/lat', 'r/spd']],
    ['($x := r; $x.lat)', ['r/lat']],
    ['($f := function($a) { $a.lat }; $f(r))', ['r/lat']],
    ['($f := function($a) { $a.b ? $f($a.b) : $a.c }; $f($))', ['b', 'c']],
    ['r@$v.{"q": $v.m}', ['r/m']],
    ['a ? b : c', ['a', 'b', 'c']],
    ['x ~> $sum()', ['x']],
    ['[a, b].c', ['a/c', 'b/c']],
    ['$map(r, function($v) { {"lat": $v.lat} })', ['r/lat']],
    ['r ~> $map(function($v) { $v.a })', ['r/a']],
    ['$filter(r, function($v) { $v.a > 1 }).b', ['r/a', 'r/b']],
    ['$reduce(r, function($i, $j) { $i + $j.a }, s)', ['r/a', 's']],
    ['$lookup($, "k v")', ['k v']],
    ['n.$uppercase()', ['n']],
    ['$append(a, b).c', ['a/c', 'b/c']],
    // The place is not known: the name counts wherever it is.
    ['**.lat', ['?lat']],
    ['a.b.%.c', ['?c']],
    ['$each(r, function($v) { $v.a })', ['?a', 'r']],
    // Everything is used.
    ['$', ['']],
    ['$merge([$, {"x": 1}])', ['']],
    ['$ ~> |a|{"b": c}|', ['', 'a', 'c']],
    ['"text"', []],
  ])('%s', (expression, places) => {
    expect(placesIn(expression)).toEqual(places)
  })
})

describe('the keys that an expression does not read', () => {
  const message = {
    Longitud: 1,
    r: [{ pos: { lat: 1, alt: 2 }, spd: 3 }, { pos: { lat: 2 } }],
  }

  test.each([
    ['r.{"lat": pos.lat, "lon": $$.lon}', ['Longitud', 'r[].spd', 'r[].pos.alt']],
    ['r.pos', ['Longitud', 'r[].spd']],
    ['r.*', ['Longitud']],
    ['**.spd', ['Longitud', 'r[].pos.lat', 'r[].pos.alt']],
    ['$merge([$, {"a": 1}])', []],
  ])('%s', (expression, keys) => {
    expect(compileExpressionUnread(expression, 1000)(message).keys).toEqual(keys)
  })

  test('are bounded', () => {
    const wide = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`k${index}`, 1]))
    expect(compileExpressionUnread('a', 50)(wide)).toMatchObject({ more: 42, partOf: 'its first 50 values' })
  })
})
