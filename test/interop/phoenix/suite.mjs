// Phoenix, which shows the traces of the guide on it; installed here from PyPI.
import { pythonPackages } from '../python-packages.mjs';

export const { missing, start } = pythonPackages('PHOENIX_PYTHON', ['arize-phoenix==20.26.1']);
