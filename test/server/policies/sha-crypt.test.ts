import { expect, test } from 'vitest';
import { isShaCryptPassword } from '../../../src/server/policies/basic-auth/sha-crypt.ts';

/** Computed by glibc's crypt(3): examples of the specification, and lengths around those of the digests. */
const HASHES: readonly (readonly [password: string, hash: string])[] = [
  ['Hello world!', '$5$saltstring$5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5'],
  ['Hello world!', '$5$rounds=10000$saltstringsaltst$3xv.VbSHBb41AL9AvLeujZkZRBAwqFMz2.opqey6IcA'],
  [
    'Hello world!',
    '$6$saltstring$svn8UoSVapNtMuq1ukKS4tPQd8iKwSMHWjl/O817G3uBnIFNjnQJuesI68u4OTLiBFdcbYEdFCoEOfaS35inz1',
  ],
  [
    'a very much longer text to encrypt.  This one even stretches over morethan one line.',
    '$6$rounds=1400$anotherlongsalts$POfYwTEok97VWcjxIiSOjiykti.o/pQs.wPvMxQ6Fm7I6IoYN3CmLs66x9t0oSwbtEW7o7UmJEiDwGqd8p4ur1',
  ],
  ['k'.repeat(0), '$5$rounds=1000$salt$oacEarljCLl1hnwSHaKByNaFLSC8faCZtGSPISXgwZ.'],
  ['k'.repeat(1), '$5$rounds=1000$salt$QZCRw/W2zG3FRyZw2mA.80SD98PCTyDEBg2RuAhAUo2'],
  ['k'.repeat(31), '$5$rounds=1000$salt$4e3KYUk.w3ik9VBLLSsz72INB2CN2hndmsfLwbGqSbD'],
  ['k'.repeat(32), '$5$rounds=1000$salt$9MBULDJClIDg6W0qCpIcWTrX.EC4gHF3eqiUegQNI81'],
  ['k'.repeat(33), '$5$rounds=1000$salt$F6200YBALOyxiXskQd6ZdOszMURfap8avKZyQ9ELH98'],
  ['k'.repeat(63), '$5$rounds=1000$salt$86fhqLXiIUqDg9LAY4QsmdwRhO5KhfRZPzsPGO2JNn7'],
  ['k'.repeat(64), '$5$rounds=1000$salt$uG7FNUH0j5k0pasVxnOyk8R0MBLa1bvhJUJoQVHvi/4'],
  ['k'.repeat(65), '$5$rounds=1000$salt$frTtK27jT4d6b.PM9/Zl1nPmF/F2WW6V/VD3wxEG5F.'],
  ['k'.repeat(96), '$5$rounds=1000$salt$ByGJuPXuOMaCGbznPmR7ZVlZhrFiztxloH.J5irTtN4'],
  ['k'.repeat(128), '$5$rounds=1000$salt$yM0nL6Yzod50efcD4Li0753PW88YsWdzIUayQDgUwo7'],
  ['Grüß €😀', '$5$rounds=1000$salt$dYFTQk1oVdRw6ANtmYRqeUqWgzdRB0dNLG1BIPMdN04'],
  [
    'k'.repeat(0),
    '$6$rounds=1000$salt$8.6rbmbp5x0d6GHKoit3wSooHPfMEY9cwCpDMr6.bC46HXi1Eqr7xqKZ9RPwaFW/eCyoUBBNRq1xG/f612CuH0',
  ],
  [
    'k'.repeat(1),
    '$6$rounds=1000$salt$xq4xvDjKgsK9qp8QwKahUnA3m5exQ647JvQbNxAPGEamGiV.agJY7xAFBaVtcbTRoyJkmHka6JACCM37G08dI/',
  ],
  [
    'k'.repeat(31),
    '$6$rounds=1000$salt$UxJXrfKxRelfdWIkU9XEMhbaoBfvbp1oWWeJBWz8mFzTgDo6yAlTIdQ2Ci.H5ac4y2YwK7e5qhtmbkTf4MLvv.',
  ],
  [
    'k'.repeat(32),
    '$6$rounds=1000$salt$86Iqu1wQtHj7g4mp2scbzhS6JVZ9.mhPdBMNJySf.jBlPNW7B/0OkIFP0nvOacGlaIl3dtkhahZRwVllL4MdS.',
  ],
  [
    'k'.repeat(33),
    '$6$rounds=1000$salt$BMCfNrRr0eUCP4Ay9RXGU8NUbq6mX/4OhkvcU1PRVuCb13/8HL7vc1baj4n5kOUSmtyfHHsyxORS1DlB1OcuO1',
  ],
  [
    'k'.repeat(63),
    '$6$rounds=1000$salt$wgkgrjvXXwDyMkDa/A9eIxsJh9fLpA98mOG5pp7DyjJx9DGSYSIZXARSh3YIGQ8Q/ROyZnpdo6kCTocfHyQmu1',
  ],
  [
    'k'.repeat(64),
    '$6$rounds=1000$salt$4utjOR/nhn3l9vaJkiliR4/Ji.WSI0FDS/fwB/bUDf.idVZy/RtHKHbJ4sxRZpH/KEef6tIhOnDvK0QpffJYK/',
  ],
  [
    'k'.repeat(65),
    '$6$rounds=1000$salt$M/00sA0jROXkQPj/NlDmTe6twSJh3Dfx39F4osvBYinwJBcW0ek/xsR3bvmTsL9GUo9pj2RJ6UIYM1pdr.vve.',
  ],
  [
    'k'.repeat(96),
    '$6$rounds=1000$salt$b/pLYxlmpKuxTqeB0RvpFR6btYsTI.Cid7vCSC9iQsScsyPHEMDEtxRYIqdoO2vFkScfF6r.XuNB7VpGrjp7R0',
  ],
  [
    'k'.repeat(128),
    '$6$rounds=1000$salt$jkQAUu.XZuJpa.vCwjp42PvlerdWZSpkjtYAfT/MytbqPoO0g9OiB65GhllnHDsyYG51LTjnVCpFpZq68ZuH3.',
  ],
  [
    'Grüß €😀',
    '$6$rounds=1000$salt$6A8ooWydgwcVmRxzo72HlnV6QxRrYh7Vmv7oga6ypSGzH2yi43W3PjFmvLXLfNMvHgrl2638vYNl7SK.oRKQL1',
  ],
];

test.each(HASHES)('the password %j has the hash %s, and no other password has it', (password, hash) => {
  expect(isShaCryptPassword(password, hash)).toBe(true);
  expect(isShaCryptPassword(`${password}x`, hash)).toBe(false);
  expect(isShaCryptPassword(password.slice(1), hash)).toBe(password === '');
});

test.each(['', '$5$', '$7$salt$x', '$5$salt$', '$6$rounds=x$salt$aaaa'])(
  '%j is the hash of no password',
  (hash) => {
    expect(isShaCryptPassword('', hash)).toBe(false);
  },
);
