// Style sheets are imported for their effect; Vite writes them to separate files.
declare module '*.css';
